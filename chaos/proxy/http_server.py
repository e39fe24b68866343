"""The HTTP/1.1 server of the API, on asyncio: connections, time limits and bounds. h11 parses and writes the bytes.

The event loop that moves the links' bytes also serves the API, so no client may occupy it for long. (A web framework
would bring its own loop or threads.) Does not own what requests mean: the handler does. Bytes that flow through proxies
never pass here.
"""

from __future__ import annotations

import asyncio
import email.utils
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import unquote

import h11

from chaos.proxy import errors, go_json
from cluster.hosts import REFUSAL, is_ours
from cluster.seams.clock import Clock
from cluster.seams.units import seconds_of_ms

logger = logging.getLogger(__name__)

#: Go's limits (docs/reference/toxiproxy.md "Routes").
_IDLE_TIMEOUT_S = 60.0
_READ_TIMEOUT_S = 15.0
_HANDLER_TIMEOUT_S = 25.0
_WRITE_TIMEOUT_S = 30.0
#: How long the client may take to read the last response and close the connection.
_CLOSE_TIMEOUT_S = 5.0
_MAX_HEAD_BYTES = 64 * 1024
#: h11 limits only the part of a head that is incomplete; a single read may exceed that limit by this much.
_READ_BYTES = 4096
#: Limits that Go does not have (docs/proxy.md).
MAX_BODY_BYTES = 1024 * 1024
MAX_CHUNKS = 1024
MAX_CONNECTIONS = 32
#: The limit for the sum of all answers that clients have not read yet.
MAX_UNREAD_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request. ``path`` is decoded and has no query; ``target`` is as received; header names are in lower case."""

    method: str
    path: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """One response. The server adds Content-Length and Date to ``headers``."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


Handler = Callable[[HttpRequest], Awaitable[Response]]


class HttpServer:
    """Serves one handler on one port."""

    def __init__(self, handler: Handler, clock: Clock) -> None:
        self._handler = handler
        self._host = ""
        self._clock = clock
        self._server: asyncio.Server | None = None
        self._writers: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = {}
        # Those that wait for their client to send a request, in the order in which the wait began.
        self._reading: dict[asyncio.StreamWriter, None] = {}
        # Those that were aborted to make room for a new one, and whose tasks are about to end.
        self._leaving: set[asyncio.StreamWriter] = set()
        self._unread_bytes = 0

    def __repr__(self) -> str:
        return f"HttpServer({len(self._writers)} connections)"

    async def start(self, host: str, port: int) -> int:
        """Start listening; returns the port. Raises ``OSError``."""
        self._host = host
        self._server = await asyncio.start_server(self._serve, host, port)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Close the port and every connection, and wait until their tasks are done."""
        if self._server is not None:
            self._server.close()
        tasks = [task for task in self._writers.values() if task is not None]
        for writer in self._writers:
            writer.close()
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=1.0)
            if left:
                for writer in self._writers:
                    writer.transport.abort()
                await asyncio.wait(left, timeout=1.0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._make_room():
            writer.transport.abort()
            return
        self._writers[writer] = asyncio.current_task()
        connection = _HttpConnection(reader, writer)
        try:
            while await self._serve_one(connection, writer):
                pass
            self._reading[writer] = None
            await connection.close()
        except (ConnectionError, TimeoutError):
            pass  # the client disconnected, or sent or read nothing for too long
        finally:
            del self._writers[writer]
            self._reading.pop(writer, None)
            self._leaving.discard(writer)
            writer.transport.abort()

    def _make_room(self) -> bool:
        """Whether another connection may be served. If there are too many, aborts the one that has waited longest."""
        if len(self._writers) - len(self._leaving) < MAX_CONNECTIONS:
            return True
        if not self._reading:
            return False
        longest = next(iter(self._reading))
        del self._reading[longest]
        self._leaving.add(longest)
        longest.transport.abort()
        return True

    async def _serve_one(self, connection: _HttpConnection, writer: asyncio.StreamWriter) -> bool:
        """Read a request and answer it; returns whether the connection continues."""
        self._reading[writer] = None
        try:
            request = await connection.read()
        except errors.ApiError as error:
            response = refusal(error)
            response.headers["Connection"] = "close"
            await connection.write(self._dated(response), has_body=True)
            return False
        except h11.RemoteProtocolError as error:
            text = f"{error.error_status_hint} {HTTPStatus(error.error_status_hint).phrase}"
            headers = {"Content-Type": "text/plain; charset=utf-8", "Connection": "close"}
            await connection.write(
                self._dated(Response(error.error_status_hint, text.encode(), headers)), has_body=True
            )
            return False
        finally:
            self._reading.pop(writer, None)
        if request is None:
            return False
        response = self._dated(await self._handle(request))
        has_body = request.method != "HEAD" and response.status != HTTPStatus.NO_CONTENT
        size_bytes = len(response.body)
        if self._unread_bytes and self._unread_bytes + size_bytes > MAX_UNREAD_BYTES:
            response = self._dated(plain(503, "too many answers wait for clients that do not read\n"))
            size_bytes = len(response.body)
        self._unread_bytes += size_bytes
        try:
            return await connection.write(response, has_body=has_body)
        finally:
            self._unread_bytes -= size_bytes

    async def _handle(self, request: HttpRequest) -> Response:
        if not is_ours(request.headers.get("host"), self._host):
            return Response(403, REFUSAL.encode(), {"Content-Type": "text/plain; charset=utf-8"})
        try:
            async with asyncio.timeout(_HANDLER_TIMEOUT_S):
                return await self._handler(request)
        except TimeoutError:
            return Response(503)
        except Exception:
            logger.exception("%s %s failed", request.method, request.target)
            return Response(500, b"internal error\n", {"Content-Type": "text/plain; charset=utf-8"})

    def _dated(self, response: Response) -> Response:
        response.headers["Date"] = email.utils.formatdate(seconds_of_ms(self._clock.wall_ms()), usegmt=True)
        if response.status != HTTPStatus.NO_CONTENT:
            response.headers["Content-Length"] = str(len(response.body))
        return response


def refusal(error: errors.ApiError) -> Response:
    """The response for an error: JSON, as Go's ``http.Error`` sends it."""
    body = go_json.encode({"error": error.message, "status": error.status})
    return plain(error.status, body.decode() + "\n")


def plain(status: int, text: str) -> Response:
    """A plain-text response, as Go's ``http.Error`` sends it."""
    headers = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}
    return Response(status, text.encode(), headers)


class _HttpConnection:
    """The connection of one client: reads requests and writes responses, one after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_MAX_HEAD_BYTES)

    async def read(self) -> HttpRequest | None:
        """The next request; None at the end of the connection.

        Raises ``RemoteProtocolError``, ``ApiError`` for a body that is too large, and ``TimeoutError``.
        """
        if not self._http.trailing_data[0]:
            async with asyncio.timeout(_IDLE_TIMEOUT_S):
                await self._receive()
        async with asyncio.timeout(_READ_TIMEOUT_S):
            event = await self._next_event()
            if not isinstance(event, h11.Request):
                return None
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
            if int(headers.get("content-length", 0)) > MAX_BODY_BYTES:
                raise errors.too_large(MAX_BODY_BYTES)
            body = await self._read_body()
        target = event.target.decode("latin-1")
        if not target.startswith(("/", "http")):
            raise h11.RemoteProtocolError("the target is no path", 400)
        if target.startswith("http"):
            target = "/" + target.split("//", 1)[-1].partition("/")[2]
        return HttpRequest(event.method.decode("latin-1"), unquote(target.partition("?")[0]), target, headers, body)

    async def write(self, response: Response, *, has_body: bool) -> bool:
        """Send a response; returns whether the connection continues."""
        headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in response.headers.items()]
        reason = HTTPStatus(response.status).phrase
        head = h11.Response(status_code=response.status, headers=headers, reason=reason.encode())
        parts = [self._http.send(head)]
        if has_body:
            parts.append(self._http.send(h11.Data(data=response.body)))
        parts.append(self._http.send(h11.EndOfMessage()))
        self._writer.write(b"".join(part for part in parts if part))
        async with asyncio.timeout(_WRITE_TIMEOUT_S):
            await self._writer.drain()
        # A client that pipelines requests would otherwise keep the event loop to itself.
        await asyncio.sleep(0)
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True

    async def close(self) -> None:
        """Close our side and wait for the client to close its own. Raises ``TimeoutError`` and ``ConnectionError``.

        Without the wait, data that the client still sends would cause a reset, which could discard the response.
        """
        self._writer.write_eof()
        async with asyncio.timeout(_CLOSE_TIMEOUT_S):
            while await self._reader.read(_READ_BYTES):
                pass

    async def _read_body(self) -> bytes:
        body, chunks = bytearray(), 0
        while True:
            event = await self._next_event()
            if not isinstance(event, h11.Data):
                return bytes(body)
            body += event.data
            chunks += event.chunk_end
            if len(body) > MAX_BODY_BYTES:
                raise errors.too_large(MAX_BODY_BYTES)
            if chunks > MAX_CHUNKS:
                raise errors.too_many_chunks(MAX_CHUNKS)

    async def _next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
                self._writer.write(self._http.send(go_on) or b"")
            await self._receive()
        return event

    async def _receive(self) -> None:
        self._http.receive_data(await self._reader.read(_READ_BYTES))
