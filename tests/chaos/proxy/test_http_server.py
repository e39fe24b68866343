"""HTTP as bytes: keep-alive, pipelining, chunked bodies, and whatever is not HTTP."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.chaos.proxy.harness import Api, connect, our_server, receive

pytestmark = pytest.mark.timeout(20)


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with our_server() as server:
        yield server


def read_answer(connection: socket.socket) -> tuple[int, bytes]:
    """Status and body of one answer."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        assert byte, head
        head += byte
    lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
    return int(lines[0].split()[1]), receive(connection, int(headers.get("content-length", 0)))


def test_a_connection_serves_many_requests(api: Api) -> None:
    """Keep-alive is the default, and requests sent ahead are answered in order."""
    with connect(api.port) as connection:
        for _ in range(2):
            connection.sendall(b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
            assert read_answer(connection)[0] == 200
        ahead = ("GET /version", "GET /nope", "POST /reset")
        connection.sendall("".join(f"{each} HTTP/1.1\r\nHost: x\r\n\r\n" for each in ahead).encode())
        assert [read_answer(connection)[0] for _ in range(3)] == [200, 404, 204]


@pytest.mark.parametrize(
    "request_bytes",
    [b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"GET /version HTTP/1.0\r\n\r\n"],
)
def test_a_connection_closes_when_asked(api: Api, request_bytes: bytes) -> None:
    """Connection: close and HTTP/1.0 end the connection after the answer."""
    with connect(api.port) as connection:
        connection.sendall(request_bytes)
        assert read_answer(connection)[0] == 200
        assert connection.recv(1) == b""


def test_chunked_bodies(api: Api) -> None:
    """A body in chunks, with an extension and a trailer, is one body."""
    body = b'9;x=y\r\n{"bad": "\r\n3\r\nyes\r\n0\r\nTrailer: 1\r\n\r\n'
    with connect(api.port) as connection:
        connection.sendall(b"POST /proxies HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
        status, answer = read_answer(connection)
        assert (status, b"unexpected EOF" in answer) == (400, True)
        connection.sendall(b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_answer(connection)[0] == 200


def test_expect_continue(api: Api) -> None:
    """A client that waits for 100 Continue before a body gets it."""
    with connect(api.port) as connection:
        connection.sendall(b"POST /populate HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        assert read_answer(connection)[0] == 100
        connection.sendall(b"[]")
        assert read_answer(connection) == (201, b'{"proxies":null}')


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET version HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /version SPDY/3\r\n\r\n", 400),
        (b"GET /version HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n", 400),
        (b"GET /version HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET /version HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n", 413),
        (b"GET /version HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"POST /reset HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"GET /version HTTP/1.1\r\n\r\n", 400),  # no Host
        (b"GET /version HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 12_000 + b"\r\n", 431),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 431),
    ],
)
def test_what_is_not_http_is_told_so(api: Api, request_bytes: bytes, status: int) -> None:
    """One answer, then the connection closes."""
    with connect(api.port) as connection:
        connection.sendall(request_bytes)
        assert read_answer(connection)[0] == status
        with contextlib.suppress(ConnectionResetError):  # a RST if it had not read everything that was sent
            assert connection.recv(1) == b""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.binary(max_size=200))
def test_garbage_harms_nobody(api: Api, garbage: bytes) -> None:
    """Any bytes and a close: the next client is served."""
    with connect(api.port) as connection:
        connection.sendall(garbage)
        connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            while connection.recv(4096):
                pass
    assert api.call("GET", "/version").status == 200


def test_a_path_is_cleaned_by_a_redirect(api: Api) -> None:
    """Go's router sends /a/../version to /version, query and all."""
    with connect(api.port) as connection:
        connection.sendall(b"GET /a/../version?x=1 HTTP/1.1\r\nHost: x\r\n\r\n")
        head = connection.recv(4096).decode()
    assert head.startswith("HTTP/1.1 301 Moved Permanently\r\n")
    assert "Location: /version?x=1\r\n" in head
