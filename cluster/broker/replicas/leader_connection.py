"""LeaderConnection: one connection to a leader, requests and the callbacks for their answers, and one timer.

Owns connecting, reconnecting, deadlines and the matching of answers. Does not own what is asked or what an answer means
(``Fetcher``). Answers are handled in the connection's callback, on the receive buffer: no task, no copy.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable
from typing import Protocol

from cluster.protocol.connection import RequestPipeline
from cluster.protocol.errors import ProtocolError
from cluster.seams.clock import Clock
from cluster.seams.transport import Connection, FrameHandler, Transport
from cluster.seams.units import seconds_of_ms

logger = logging.getLogger(__name__)

_CORRELATION_ID = struct.Struct(">i")

#: What to do with a response, given its frame. Raises ``ProtocolError`` for one that cannot be.
OnResponse = Callable[[memoryview], None]


class ConnectionUser(Protocol):
    """Who uses a link. Called on the loop."""

    def link_is_up(self) -> None: ...

    def link_is_down(self) -> None:
        """What was in flight will not be answered."""
        ...

    def answered(self) -> None:
        """An answer was handled."""
        ...

    def timer(self) -> None:
        """A time set by ``wake_in`` has come."""
        ...


class LeaderConnection:
    """``address`` tells where the leader is reached now, or None. Times are milliseconds."""

    def __init__(
        self,
        leader_id: int,
        owner: ConnectionUser,
        *,
        address: Callable[[int], tuple[str, int] | None],
        transport: Transport,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        connect_timeout_ms: int,
        backoff_ms: int,
    ) -> None:
        self._leader_id = leader_id
        self._owner = owner
        self._address = address
        self._transport = transport
        self._clock = clock
        self._loop = loop
        self._connect_timeout_ms = connect_timeout_ms
        self._backoff_ms = backoff_ms
        self._connection: Connection | None = None
        self._pipeline: RequestPipeline[OnResponse] = RequestPipeline()
        self._connecting: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        state = "up" if self.is_up else "connecting" if self._connecting else "down"
        return f"<LeaderConnection to {self._leader_id} {state}, {self.in_flight} in flight>"

    @property
    def is_up(self) -> bool:
        return self._connection is not None

    @property
    def is_waiting(self) -> bool:
        """Whether the timer is set: after a failure it is, until the next attempt."""
        return self._timer is not None

    @property
    def in_flight(self) -> int:
        return len(self._pipeline)

    def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
        if self._connection is not None:
            self._connection.abort()

    # Requests

    def next_correlation_id(self) -> int:
        return self._pipeline.next_correlation_id()

    def send(self, correlation_id: int, request: bytes, timeout_ms: int, on_response: OnResponse) -> None:
        """Send a request with its header. Without an answer in time the connection is abandoned.

        While the link is down nothing is sent: ``link_is_down`` was called.
        """
        if self._connection is None:
            return
        self._pipeline.sent(correlation_id, self._clock.monotonic_ms() + timeout_ms, on_response)
        self._connection.send_frame([request])
        if self._timer is None:
            self.wake_in(timeout_ms)

    def wake_in(self, delay_ms: float) -> None:
        """Call ``ConnectionUser.timer`` after a while, and not later than already planned."""
        when = self._loop.time() + seconds_of_ms(delay_ms)
        if self._timer is not None:
            if self._timer.when() <= when:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._tick)

    def _tick(self) -> None:
        self._timer = None
        now_ms = self._clock.monotonic_ms()
        connection = self._connection
        if connection is not None and self._pipeline.expired(now_ms):
            self._give_up(connection, "no answer in time")
            return
        self._owner.timer()
        deadline_ms = self._pipeline.next_deadline_ms()
        if deadline_ms is not None:
            self.wake_in(deadline_ms - now_ms)

    # The connection

    def connect(self) -> None:
        """Begin to connect, unless that is under way; ``link_is_up`` or ``timer`` follows."""
        if self._connecting is None and self._connection is None and not self._is_closed:
            self._connecting = self._loop.create_task(self._open())

    async def _open(self) -> None:
        address = self._address(self._leader_id)
        try:
            if address is None:
                raise ConnectionError(f"broker {self._leader_id} has no address")
            connection = await self._transport.connect(*address, self._accept, timeout_ms=self._connect_timeout_ms)
        except (OSError, TimeoutError) as error:
            logger.debug("broker %d cannot be reached at %s: %s", self._leader_id, address, error)
            self._connecting = None
            self.wake_in(self._backoff_ms)
            return
        self._connecting = None
        self._connection = connection
        logger.info("following broker %d at %s", self._leader_id, connection.peer)
        self._owner.link_is_up()

    def _accept(self, connection: Connection) -> FrameHandler:
        return _Receiver(self, connection)

    def received(self, connection: Connection, frame: memoryview) -> None:
        """A frame arrived on a connection, perhaps a former one."""
        if connection is not self._connection:
            return
        try:
            (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
            self._pipeline.received(correlation_id).context(frame)
        except (ProtocolError, struct.error) as error:
            self._give_up(connection, f"a response that cannot be: {error}")
            return
        self._owner.answered()

    def _give_up(self, connection: Connection, reason: str) -> None:
        connection.abort()
        self.lost(connection, reason)

    def lost(self, connection: Connection, reason: str) -> None:
        """A connection is gone, perhaps a former one."""
        if connection is not self._connection:
            return
        self._connection = None
        for _ in self._pipeline.drain():
            pass
        if not self._is_closed:
            logger.info("lost broker %d: %s", self._leader_id, reason)
            self._owner.link_is_down()
            self.wake_in(self._backoff_ms)


class _Receiver:
    """The frames of one connection of a link."""

    def __init__(self, link: LeaderConnection, connection: Connection) -> None:
        self._link = link
        self._connection = connection

    def on_frame(self, frame: memoryview) -> None:
        self._link.received(self._connection, frame)

    def on_eof(self) -> None:
        self._connection.close()

    def on_closed(self, reason: str) -> None:
        self._link.lost(self._connection, reason)
