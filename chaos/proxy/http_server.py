"""A small HTTP/1.1 server on asyncio for the API: keep-alive, Content-Length and chunked bodies, time limits.

Hand-written because nothing among the dependencies fits: aiohttp is not one of them, and werkzeug (which comes with
Locust) is WSGI, so it would need threads off the loop that owns the links. Owns requests and responses as bytes;
what they mean is the handler's. The data of proxies never passes here.
"""

from __future__ import annotations

import asyncio
import email.utils
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import unquote

from cluster.hosts import REFUSAL, is_ours
from cluster.seams.clock import Clock

logger = logging.getLogger(__name__)

#: Go's limits (docs/reference/toxiproxy.md "Routes").
_IDLE_TIMEOUT_S = 60.0
_READ_TIMEOUT_S = 15.0
_HANDLER_TIMEOUT_S = 25.0
_MAX_LINE_BYTES = 64 * 1024
_MAX_HEADERS = 200
_MAX_BODY_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request. ``path`` is decoded and without the query, ``target`` as it came; header names in lower case."""

    method: str
    path: str
    target: str
    headers: dict[str, str]
    body: bytes
    keep_alive: bool


@dataclass(frozen=True, slots=True)
class Response:
    """One response; ``headers`` beside Content-Length and Date, which are added."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


class _BadRequest(Exception):
    """Bytes that are no HTTP: answered with this status, then the connection closes."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


Handler = Callable[[HttpRequest], Awaitable[Response]]


class HttpServer:
    """Serves one handler on one port."""

    def __init__(self, handler: Handler, clock: Clock) -> None:
        self._handler = handler
        self._host = ""
        self._clock = clock
        self._server: asyncio.Server | None = None
        self._writers: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = {}

    def __repr__(self) -> str:
        return f"HttpServer({len(self._writers)} connections)"

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port. Raises ``OSError``."""
        self._host = host
        self._server = await asyncio.start_server(self._serve, host, port, limit=_MAX_LINE_BYTES)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Close the port and every connection, and wait until their tasks are done."""
        if self._server is not None:
            self._server.close()
        tasks = [task for task in self._writers.values() if task is not None]
        for writer in self._writers:
            writer.close()
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers[writer] = asyncio.current_task()
        try:
            while await self._serve_one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            pass  # the client went away, or said nothing for too long
        finally:
            del self._writers[writer]
            writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Read one request and answer it; returns whether the connection continues."""
        try:
            async with asyncio.timeout(_IDLE_TIMEOUT_S):
                line = await _read_line(reader)
            if not line:
                return False
            async with asyncio.timeout(_READ_TIMEOUT_S):
                request = await _read_request(line, reader, writer)
        except _BadRequest as error:
            phrase = f"{error.status} {HTTPStatus(error.status).phrase}"
            headers = {"Content-Type": "text/plain; charset=utf-8", "Connection": "close"}
            self._write(writer, Response(error.status, phrase.encode(), headers), "GET")
            await writer.drain()
            return False
        response = await self._handle(request)
        if not request.keep_alive:
            response.headers["Connection"] = "close"
        self._write(writer, response, request.method)
        await writer.drain()
        return request.keep_alive

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

    def _write(self, writer: asyncio.StreamWriter, response: Response, method: str) -> None:
        lines = [f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}"]
        lines += [f"{name}: {value}" for name, value in response.headers.items()]
        lines.append(f"Date: {email.utils.formatdate(self._clock.wall_ms() / 1000, usegmt=True)}")
        if response.status != HTTPStatus.NO_CONTENT:
            lines.append(f"Content-Length: {len(response.body)}")
        head = "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n"
        writer.write(head if method == "HEAD" else head + response.body)


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    """A line without its end; empty at the end of the connection or for an empty line."""
    try:
        line = await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return b""
    except asyncio.LimitOverrunError:
        raise _BadRequest(431) from None
    return line.rstrip(b"\r\n")


async def _read_request(line: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> HttpRequest:
    parts = line.decode("latin-1").split(" ")
    if len(parts) != 3 or not parts[0] or not parts[2].startswith("HTTP/1.") or not parts[1].startswith(("/", "http")):
        raise _BadRequest(400)
    method, target, version = parts
    headers = await _read_headers(reader)
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = await _read_body(headers, reader)
    connection = headers.get("connection", "").lower()
    keep_alive = connection != "close" if version != "HTTP/1.0" else connection == "keep-alive"
    path = "/" + target.split("//", 1)[1].partition("/")[2] if target.startswith("http") else target
    return HttpRequest(method, unquote(path.partition("?")[0]), path, headers, body, keep_alive)


async def _read_headers(reader: asyncio.StreamReader) -> dict[str, str]:
    headers: dict[str, str] = {}
    for _ in range(_MAX_HEADERS):
        line = (await _read_line(reader)).decode("latin-1")
        if not line:
            return headers
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise _BadRequest(400)
        headers[name.lower()] = value.strip()
    raise _BadRequest(431)


async def _read_body(headers: dict[str, str], reader: asyncio.StreamReader) -> bytes:
    encoding = headers.get("transfer-encoding", "").lower()
    if encoding:
        if encoding != "chunked":
            raise _BadRequest(501)
        return await _read_chunked(reader)
    length_text = headers.get("content-length", "0")
    if not (length_text.isascii() and length_text.isdigit()) or len(length_text) > 12:
        raise _BadRequest(400)
    length = int(length_text)
    if length > _MAX_BODY_BYTES:
        raise _BadRequest(413)
    return await reader.readexactly(length)


async def _read_chunked(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while True:
        try:
            size = int((await _read_line(reader)).partition(b";")[0], 16)
        except ValueError:
            raise _BadRequest(400) from None
        if size < 0:
            raise _BadRequest(400)
        if len(body) + size > _MAX_BODY_BYTES:
            raise _BadRequest(413)
        if size == 0:
            while await _read_line(reader):
                pass  # trailers
            return bytes(body)
        body += await reader.readexactly(size)
        if await _read_line(reader):
            raise _BadRequest(400)
