"""BrokerConnection: requests and their responses over one connection; the asyncio shell of the pure core.

Owns futures and the timer of the first deadline. Does not own retries, versions or which broker to ask. Used by
brokers among themselves and by ``Admin``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from cluster.protocol import messages
from cluster.protocol.connection import RequestPipeline
from cluster.protocol.errors import ProtocolError
from cluster.protocol.message_classes import Request
from cluster.protocol.primitives import INT32, refusing_malformed
from cluster.seams.transport import MAX_FRAME_BYTES, Connection, Transport
from cluster.seams.units import ms_of_seconds, seconds_of_ms

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")

#: Where the correlation id is in a request.
_CORRELATION_ID_AT = 4
#: A timer may fire this much before its time; a deadline so near has passed.
_TIMER_SLACK_MS = 0.5


@dataclass(frozen=True, slots=True)
class _WaitingAnswer:
    """Who waits for a response, and how it is taken out of the frame while the frame is valid."""

    future: asyncio.Future[Any]
    consume: Callable[[memoryview], Any]


class BrokerConnection:
    """One connection to a broker. Requests may be pipelined; responses come in their order.

    Every call raises ``ConnectionError`` when the connection is or goes away, and ``TimeoutError`` when its response
    does not come in time. After a timeout the connection is closed: the late response would be taken for the next.
    """

    def __init__(self, client_id: str, timeout_ms: int) -> None:
        """Use ``open``. ``timeout_ms`` is the default of every request."""
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._loop = asyncio.get_running_loop()
        self._pipeline: RequestPipeline[_WaitingAnswer] = RequestPipeline()
        self._connection: Connection | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed_reason: str | None = None

    def __repr__(self) -> str:
        peer = self._connection.peer if self._connection is not None else "?"
        return f"BrokerConnection({peer}, {self._pipeline!r}, closed={self._closed_reason!r})"

    @classmethod
    async def open(
        cls,
        transport: Transport,
        host: str,
        port: int,
        client_id: str,
        timeout_ms: int,
        *,
        max_frame_bytes: int = MAX_FRAME_BYTES,
    ) -> BrokerConnection:
        """Connect. Raises ``OSError`` (among them ``ConnectionError``) or ``TimeoutError``."""
        connection = cls(client_id, timeout_ms)
        await transport.connect(host, port, connection._attach, timeout_ms=timeout_ms, max_frame_bytes=max_frame_bytes)
        return connection

    @property
    def is_closed(self) -> bool:
        return self._closed_reason is not None

    def next_correlation_id(self) -> int:
        """The id for a request that is built by hand and given to ``send_raw`` or ``exchange``."""
        return self._pipeline.next_correlation_id()

    async def send(self, message: Request[Answer], version: int, timeout_ms: int | None = None) -> Answer:
        """Send a request message and return the response message."""
        api_key = message.API_KEY
        request = messages.encode_request(message, version, self.next_correlation_id(), self._client_id)
        return await self.exchange(
            request, lambda frame: messages.decode_response(api_key, version, frame)[1], timeout_ms
        )

    async def send_raw(self, request: bytes, timeout_ms: int | None = None) -> memoryview:
        """Send an encoded request (with header and a correlation id of ours); return a copy of the response frame."""
        return await self.exchange(request, lambda frame: memoryview(bytearray(frame)), timeout_ms)

    async def exchange(
        self, request: bytes, consume: Callable[[memoryview], Answer], timeout_ms: int | None = None
    ) -> Answer:
        """Like ``send_raw``, but the frame is not copied: ``consume`` is called with it and its result returned.

        The frame is valid, and writable, only during that call.
        """
        if self._closed_reason is not None or self._connection is None:
            raise ConnectionError(self._closed_reason or "not connected")
        (correlation_id,) = INT32.unpack_from(request, _CORRELATION_ID_AT)
        deadline_ms = self._now_ms() + (self._timeout_ms if timeout_ms is None else timeout_ms)
        future: asyncio.Future[Answer] = self._loop.create_future()
        self._pipeline.sent(correlation_id, deadline_ms, _WaitingAnswer(future, consume))
        self._watch(deadline_ms)
        self._connection.send_frame((request,))
        return await future

    def close(self) -> None:
        """Close; what still waits raises ``ConnectionError``. A second call does nothing."""
        self._end("closed from here")

    # What the transport calls.

    def on_frame(self, frame: memoryview) -> None:
        with refusing_malformed("response header"):
            (correlation_id,) = INT32.unpack_from(frame, 0)
        waiting = self._pipeline.received(correlation_id).context
        if waiting.future.done():
            return
        try:
            answer = waiting.consume(frame)
        except ProtocolError as error:
            waiting.future.set_exception(ConnectionError(f"unreadable response: {error}"))
            raise
        except Exception as error:
            waiting.future.set_exception(error)
        else:
            waiting.future.set_result(answer)

    def on_eof(self) -> None:
        self._end("closed by the broker")

    def on_closed(self, reason: str) -> None:
        self._end(reason)

    def _attach(self, connection: Connection) -> BrokerConnection:
        self._connection = connection
        return self

    # Deadlines.

    def _now_ms(self) -> float:
        return ms_of_seconds(self._loop.time())

    def _watch(self, deadline_ms: float) -> None:
        """See that the timer fires no later than ``deadline_ms``."""
        if self._timer is not None:
            if ms_of_seconds(self._timer.when()) <= deadline_ms:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(seconds_of_ms(deadline_ms), self._check_deadlines)

    def _check_deadlines(self) -> None:
        self._timer = None
        deadline_ms = self._pipeline.next_deadline_ms()
        if self._pipeline.expired(self._now_ms() + _TIMER_SLACK_MS):
            self._end("no response in time", timed_out=True)
        elif deadline_ms is not None:
            self._watch(deadline_ms)

    def _end(self, reason: str, *, timed_out: bool = False) -> None:
        if self._closed_reason is not None:
            return
        self._closed_reason = reason
        if self._timer is not None:
            self._timer.cancel()
        if self._connection is not None:
            self._connection.abort()
        now_ms = self._now_ms() + _TIMER_SLACK_MS
        for request in self._pipeline.drain():
            if not request.context.future.done():
                late = timed_out and request.deadline_ms <= now_ms
                request.context.future.set_exception(TimeoutError(reason) if late else ConnectionError(reason))
