"""An HTTP port for a WSGI application that reads and changes nothing, beside an event loop that must not suffer by it.

Owns its bounds: how many connections are served at a time, how long each may take, how large the head of a request may
be, and what part of the processor the application gets. A connection brings one request, and a body of it is not read.
When all places are taken, the connection that has not sent its request for the longest time is closed for a new one,
but not before it had a moment to send it.
"""

from __future__ import annotations

import contextlib
import io
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from cluster.seams.out_of_memory import halt_if_out_of_memory

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

#: Connections at a time; as many threads and descriptors.
MOST_CONNECTIONS = 8
#: For the head of a request, and again for the response to be taken.
TIMEOUT_S = 5.0
MOST_HEAD_BYTES = 16 * 1024
#: An application rests this many times as long as it worked: it gets a fifth of a processor at most.
RESTS = 4

#: Connections that wait until they are accepted.
_BACKLOG = 64
#: After a connection was closed for a new one, or none could be accepted: a flood of them is not a busy loop.
_PAUSE_S = 0.005
#: For the thread of a connection that was closed to end.
_END_S = 1.0
#: A connection has this long for its request before it is closed for another one. It is also the time that those who
#: were answered have to leave their places: a few readers that ask again at once need never lose a connection.
_LEAST_S = 0.25
#: What an answer depends on.
_KEYS = ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING", "HTTP_ACCEPT", "HTTP_ACCEPT_ENCODING")


class HttpPort:
    """Serves from its making until ``close``. Raises ``OSError`` if the port is taken."""

    def __init__(self, application: Application, port: int, host: str) -> None:
        (family, *_), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        kind = type("_PageServer", (_PageServer,), {"address_family": family})
        self._server: WSGIServer = make_server(host, port, _Rested(application), kind, _PageHandler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="http port", daemon=True)
        self._thread.start()
        self.port: int = self._server.server_port

    def __repr__(self) -> str:
        return f"HttpPort({self.port})"

    def close(self) -> None:
        """Accept nothing anymore. What is being answered may still end."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=1)


class _PageServer(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = _BACKLOG

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._places = threading.Semaphore(MOST_CONNECTIONS)
        # When each came, in that order; adding to it and taking from it need no lock.
        self._without_request: dict[socket.socket, float] = {}

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError:
            time.sleep(_PAUSE_S)
            raise

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether there is a place for it."""
        if not self._places.acquire(blocking=False) and not self._place_of_another():
            return False
        self._without_request[request] = time.monotonic()
        return True

    def _place_of_another(self) -> bool:
        """Whether one leaves, or had to leave for having sent no request."""
        while longest := next(iter(list(self._without_request.items())), None):
            connection, came_s = longest
            left_s = came_s + _LEAST_S - time.monotonic()
            if left_s <= 0:
                self.has_request(connection)
                _shut(connection)
                time.sleep(_PAUSE_S)
                break
            if self._places.acquire(timeout=left_s):
                return True
        return self._places.acquire(timeout=_END_S)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.has_request(request)
            self._places.release()

    def has_request(self, request: socket.socket) -> None:
        """It is not closed for others from now on: it is being answered."""
        self._without_request.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away, or was too slow, is no error of ours; that there is no memory is."""
        halt_if_out_of_memory(sys.exc_info()[1])


class _PageHandler(WSGIRequestHandler):
    timeout = TIMEOUT_S
    server: _PageServer

    def handle(self) -> None:
        """One request, whose head is read before anything is made of it."""
        head = self._head()
        self.server.has_request(self.connection)
        if not head:
            return
        if not _is_whole(head):
            self.wfile.write(b"HTTP/1.0 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n")
            return
        self.connection.settimeout(TIMEOUT_S)
        self.rfile.close()
        self.rfile = io.BytesIO(head)
        super().handle()

    def _head(self) -> bytes:
        """Through its end; empty if it does not come in time, without its end if it is too large."""
        head = bytearray()
        deadline_s = time.monotonic() + TIMEOUT_S
        while not _is_whole(head) and len(head) < MOST_HEAD_BYTES:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return b""
            self.connection.settimeout(left_s)
            data = self.connection.recv(MOST_HEAD_BYTES - len(head))
            if not data:
                return b""
            head += data
        return bytes(head)

    def log_message(self, *_message: Any) -> None:
        """Clients could fill the log."""


class _Rested:
    """One call of the application at a time, and a rest after it. Callers that waited with the same request share
    a call that began after they came: no answer is older than its question."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._one = threading.Lock()
        self._begun_s = 0.0
        self._rested_s = 0.0
        self._request: tuple[str, ...] = ()
        self._answer: tuple[str, list[tuple[str, str]], bytes] = "", [], b""

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        came_s = time.monotonic()
        request = tuple(str(environ.get(key, "")) for key in _KEYS)
        with self._one:
            if request != self._request or self._begun_s < came_s:
                time.sleep(max(0.0, self._rested_s - time.monotonic()))
                self._begun_s, worked_s = time.monotonic(), time.thread_time()
                self._request = ()
                try:
                    self._answer = self._ask(environ)
                    self._request = request
                except MemoryError as error:
                    # its caller would print a traceback, and continue
                    halt_if_out_of_memory(error)
                    raise
                finally:
                    self._rested_s = time.monotonic() + RESTS * (time.thread_time() - worked_s)
            status, headers, body = self._answer
        start_response(status, list(headers))
        return [body]

    def _ask(self, environ: dict[str, Any]) -> tuple[str, list[tuple[str, str]], bytes]:
        said: list[tuple[str, list[tuple[str, str]]]] = []
        body = b"".join(self._application(environ, lambda status, headers: said.append((status, headers))))
        return *said[0], body


def _is_whole(head: bytes | bytearray) -> bool:
    return b"\r\n\r\n" in head or b"\n\n" in head


def _shut(connection: socket.socket) -> None:
    """Its thread reads its end, and closes it."""
    with contextlib.suppress(OSError):  # it may have ended meanwhile
        connection.shutdown(socket.SHUT_RDWR)
