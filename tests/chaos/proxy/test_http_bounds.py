"""What clients of the API may take of the loop that serves the links: memory, connections and turns."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Iterator

import pytest

from chaos.proxy import bounds, http_server
from chaos.proxy.api import MAX_VALUES
from chaos.proxy.http_server import MAX_BODY_BYTES, MAX_CHUNKS, MAX_CONNECTIONS, HttpRequest, HttpServer, Response
from cluster.seams.clock import SystemClock
from tests.chaos.proxy.harness import HOST, Api, connect, our_server
from tests.chaos.proxy.test_http_server import read_answer

pytestmark = pytest.mark.timeout(30)

POPULATE = b"POST /populate HTTP/1.1\r\nHost: x\r\n"
CHUNKED = POPULATE + b"Transfer-Encoding: chunked\r\n\r\n"
ASK = b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with our_server() as server:
        yield server


def ended(connection: socket.socket) -> bool:
    """Whether the server has closed it."""
    with contextlib.suppress(ConnectionError):
        try:
            while connection.recv(65536):
                pass
        except TimeoutError:
            return False
    return True


@pytest.mark.parametrize(
    "request_bytes",
    [
        POPULATE + b"Content-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1),
        CHUNKED + b"%x\r\n" % (MAX_BODY_BYTES + 1) + b" " * (MAX_BODY_BYTES + 1),
        CHUNKED + b"1\r\n \r\n" * (MAX_CHUNKS + 1),
    ],
)
def test_a_body_is_bounded_while_it_comes(api: Api, request_bytes: bytes) -> None:
    """In bytes and in chunks; the refusal looks like all errors of the API, and ends the connection."""
    with connect(api.port) as connection:
        connection.sendall(request_bytes + bytes(3_000_000))
        status, body = read_answer(connection)
        assert (status, json.loads(body)["status"]) == (413, 413)
        assert "request body was" in json.loads(body)["error"]
        connection.shutdown(socket.SHUT_WR)
        assert ended(connection)


def test_the_largest_body(api: Api) -> None:
    """It is read, in as many chunks as it may have."""
    assert api.call("POST", "/populate", "[]".ljust(MAX_BODY_BYTES)).status == 201
    with connect(api.port) as connection:
        connection.sendall(CHUNKED + b"2\r\n[]\r\n" + b"1\r\n \r\n" * (MAX_CHUNKS - 1) + b"0\r\n\r\n")
        assert read_answer(connection)[0] == 201


@pytest.mark.parametrize("text", ["[" + "{}," * MAX_VALUES + "{}]", "[" * (MAX_VALUES + 1), "[" + "1," * MAX_VALUES])
def test_a_body_has_not_too_many_values(api: Api, text: str) -> None:
    """They are counted before anything is made of them."""
    answer = api.call("POST", "/populate", text)
    assert answer.status == 413
    assert answer.json() == {"error": f"request body had too many values, at most {MAX_VALUES}", "status": 413}


@pytest.mark.parametrize("begun", [b"", ASK[:20], POPULATE + b"Content-Length: 1000000\r\n\r\n["])
def test_a_crowd_keeps_no_one_out(api: Api, begun: bytes) -> None:
    """The client that lets the server wait for the longest time makes room."""
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(connect(api.port)) for _ in range(2 * MAX_CONNECTIONS)]
        for connection in crowd:
            with contextlib.suppress(ConnectionError):
                connection.sendall(begun)
        assert api.call("GET", "/version").status == 200
        assert all(map(ended, crowd[:MAX_CONNECTIONS]))
        for connection in crowd[MAX_CONNECTIONS + 1 :]:
            connection.settimeout(0.02)
        assert sum(map(ended, crowd[MAX_CONNECTIONS + 1 :])) == 0


def test_who_does_not_read_is_dropped(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that was written and not sent. Its answers are large: thousands of small ones would fit into what the
    kernel takes of them."""
    monkeypatch.setattr(http_server, "_WRITE_TIMEOUT_S", 0.3)
    proxy = {"listen": "127.0.0.1:0", "upstream": "n" * 200 + ":1", "enabled": False}
    api.ok("POST", "/populate", [{**proxy, "name": f"many-{number}"} for number in range(500)])
    with contextlib.closing(socket.socket()) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(2)
        connection.connect((HOST, api.port))
        with contextlib.suppress(ConnectionError, TimeoutError):
            while True:
                connection.sendall(ASK.replace(b"/version", b"/proxies") * 1000)
        assert ended(connection)


LONG = "n" * (bounds.MAX_NAME_CHARS + 1)
FAR = "n" * bounds.MAX_ADDRESS_CHARS + ":1"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/proxies", {"name": LONG, "listen": "127.0.0.1:0", "upstream": "x:1"}),
        ("POST", "/proxies", {"name": "long", "listen": FAR, "upstream": "x:1"}),
        ("POST", "/proxies", {"name": "long", "listen": "127.0.0.1:0", "upstream": FAR}),
        ("POST", "/populate", [{"name": LONG, "listen": "127.0.0.1:0", "upstream": "x:1"}]),
        ("POST", "/proxies/kept", {"upstream": FAR}),
        ("POST", "/proxies/kept", {"listen": FAR}),
        ("POST", "/proxies/kept/toxics", {"name": LONG, "type": "latency"}),
    ],
)
def test_what_is_kept_has_no_long_names(api: Api, method: str, path: str, body: object) -> None:
    """They would be in every answer about all proxies; the longest that are allowed are taken."""
    kept = {"name": "kept", "listen": "127.0.0.1:0", "upstream": FAR[:-2], "enabled": False}
    api.ok("POST", "/populate", [kept, {**kept, "name": LONG[1:]}])
    before = api.ok("GET", "/proxies")
    answer = api.call(method, path, body)
    assert answer.status == 400 and "must not have more than" in answer.json()["error"]
    assert api.ok("GET", "/proxies") == before


def test_proxies_toxics_and_their_texts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was removed makes room; what is full refuses what is new (413), and not a change of what is there."""
    for name, most in (("MAX_PROXIES", 2), ("MAX_TOXICS", 2), ("MAX_TEXT_CHARS", 60)):
        monkeypatch.setattr(bounds, name, most)
    body = {"listen": "127.0.0.1:0", "upstream": "x:1", "enabled": False}
    with our_server() as api:
        for name in "ab":
            api.ok("POST", "/proxies", {"name": name, **body})
        answer = api.call("POST", "/proxies", {"name": "c", **body})
        assert (answer.status, answer.json()["error"]) == (413, "too many proxies, at most 2")
        assert api.call("POST", "/populate", [{"name": "c", **body}]).status == 413
        assert api.call("POST", "/proxies/a", {"upstream": "x" * 60}).status == 413
        api.ok("POST", "/proxies/a", {"upstream": "y:1"})
        api.ok("DELETE", "/proxies/b")
        api.ok("POST", "/proxies", {"name": "c", **body})
        for name in "ac":
            api.ok("POST", f"/proxies/{name}/toxics", {"type": "latency"})
        answer = api.call("POST", "/proxies/a/toxics", {"type": "timeout"})
        assert (answer.status, answer.json()["error"]) == (413, "too many toxics, at most 2")
        api.ok("DELETE", "/proxies/c/toxics/latency_downstream")
        api.ok("POST", "/proxies/a/toxics", {"type": "timeout"})
        assert sorted(api.ok("GET", "/proxies")) == sorted(api.ok("GET", "/gapless/stats")["proxies"]) == ["a", "c"]


def test_answers_that_no_one_reads_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more is refused (503) until one of them was read or given up."""
    size = 8 << 20
    monkeypatch.setattr(http_server, "MAX_UNREAD_BYTES", size)

    async def main() -> None:
        async def handle(_request: HttpRequest) -> Response:
            return Response(200, bytes(size))

        server = HttpServer(handle, SystemClock())
        port = await server.start(HOST, 0)
        reader, writer = await asyncio.open_connection(HOST, port, limit=1024)
        writer.write(ASK)
        assert b" 200 " in await reader.readline()
        other, more = await asyncio.open_connection(HOST, port)
        more.write(ASK)
        assert b" 503 " in await other.readline()
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(size)
        await asyncio.sleep(0)
        third, last = await asyncio.open_connection(HOST, port)
        last.write(ASK)
        assert b" 200 " in await third.readline()
        for each in (writer, more, last):
            each.close()
        await server.stop()

    asyncio.run(main())


def test_requests_that_were_sent_ahead_leave_turns_to_others() -> None:
    """Of the requests of a pipeline, each turn of the event loop handles one."""

    async def main() -> None:
        turn, seen = 0, []

        async def handle(_request: HttpRequest) -> Response:
            seen.append(turn)
            return Response(200)

        server = HttpServer(handle, SystemClock())
        port = await server.start(HOST, 0)
        _, writer = await asyncio.open_connection(HOST, port)
        writer.write(ASK * 100)
        while len(seen) < 100:
            turn += 1
            await asyncio.sleep(0)
        writer.close()
        await server.stop()
        assert len(set(seen)) == 100

    asyncio.run(main())
