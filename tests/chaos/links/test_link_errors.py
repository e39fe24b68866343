"""What comes of calls that a link server refuses, answers wrongly or not at all, or does not know."""

from __future__ import annotations

import socket
import threading

import pytest

from chaos.links import (
    LinkConflict,
    LinkMismatch,
    LinkNotFound,
    LinkRefused,
    Links,
    LinkServerError,
    LinkTimeout,
    LinkUnreachable,
)
from tests.chaos.proxy.harness import (
    HOST,
    Upstream,
)

pytestmark = pytest.mark.timeout(20)


def test_errors_are_typed_and_carry_the_text(links: Links, port: int) -> None:
    """Every answer that is not 2xx raises, also those that toxiproxy-python hides."""
    with pytest.raises(LinkNotFound, match="no such link: none"):
        links.add_toxic("none", "latency")
    with pytest.raises(LinkNotFound, match="proxy not found"):
        links.show("none")
    with pytest.raises(LinkRefused, match="invalid toxic type"):
        links.add_toxic("b1-b2", "nope")
    with pytest.raises(LinkConflict):
        links.create("b1-b2", f"{HOST}:1")
    with pytest.raises(LinkServerError, match="address already in use") as caught:
        links.create("b2-b1", f"{HOST}:1", listen=f"{HOST}:{port}")
    assert caught.value.status == 500
    links.add_toxic("b1-b2", "noop")
    with pytest.raises(LinkConflict, match="toxic already exists"):
        links.add_toxic("b1-b2", "noop")


@pytest.mark.parametrize("name", ["", "a/b", "../x", "a b", "-x"])
def test_only_harmless_names(links: Links, name: str) -> None:
    """The library does not quote names, so they must need no quoting."""
    with pytest.raises(ValueError, match="not a name"):
        links.show(name)


@pytest.mark.parametrize("url", ["https://127.0.0.1:8474", "http://", "http://127.0.0.1:1/path"])
def test_only_plain_http(url: str) -> None:
    """An address that cannot work is refused at once."""
    with pytest.raises(ValueError, match="not the address"):
        Links(url)


def test_nobody_there() -> None:
    """A refused connect is LinkUnreachable."""
    with socket.create_server((HOST, 0)) as unused:
        url = f"http://{HOST}:{unused.getsockname()[1]}"
    with pytest.raises(LinkUnreachable):
        Links(url).version()


def answering(answer: bytes) -> Upstream:
    """A server that gives one answer to whatever it is asked; none if empty."""

    def handle(connection: socket.socket) -> None:
        connection.recv(65536)
        if answer:
            connection.sendall(answer)
            connection.shutdown(socket.SHUT_RDWR)
        else:
            connection.recv(1)

    return Upstream(handle)


def http(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


def test_every_call_has_a_hard_timeout() -> None:
    """A server that accepts and never answers costs the timeout, no more."""
    with answering(b"") as server, pytest.raises(LinkTimeout, match=r"within 0\.2 s"):
        Links(f"http://{HOST}:{server.port}", timeout_s=0.2).show("b1-b2")


def test_a_trickling_answer_is_cut_off() -> None:
    """Bytes that keep coming do not keep the call alive."""
    done = threading.Event()

    def trickle(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not done.wait(0.05):
            connection.sendall(b"1\r\n \r\n")

    with Upstream(trickle) as server:
        try:
            with pytest.raises(LinkTimeout):
                Links(f"http://{HOST}:{server.port}", timeout_s=0.3).show("b1-b2")
        finally:
            done.set()


def test_a_change_that_did_not_happen_is_noticed() -> None:
    """The server says 200 but its state is as before: LinkMismatch, not a silent success."""
    state = b'{"name":"b1-b2","listen":"127.0.0.1:1","upstream":"127.0.0.1:2","enabled":false,"toxics":[]}'
    with answering(http(state)) as server:
        links = Links(f"http://{HOST}:{server.port}")
        with pytest.raises(LinkMismatch, match=r"upstream is '127\.0\.0\.1:2'"):
            links.set_upstream("b1-b2", f"{HOST}:3")
    with answering(http(b'{"b1-b2":' + state + b"}")) as server:
        with pytest.raises(LinkMismatch, match="still not clear after a reset"):
            Links(f"http://{HOST}:{server.port}").reset()


def test_a_5xx_that_the_library_hides(port: int) -> None:
    """Answers above 499 raise with their text, whatever its form."""
    with answering(http(b"oops", "503 Service Unavailable")) as server:
        with pytest.raises(LinkServerError, match="503 oops"):
            Links(f"http://{HOST}:{server.port}").reset()


def test_a_foreign_server_has_no_statistics() -> None:
    """404 for our extension means a foreign server, which is no error."""
    with answering(http(b"404 page not found\n", "404 Not Found")) as server:
        links = Links(f"http://{HOST}:{server.port}")
        assert links.server_stats() is None
        assert not links.is_gapless()
