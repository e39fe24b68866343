"""MemoryConnection: one end of a connection inside one process.

Owns what has arrived and was not handled yet, what travels from here, and how an end ends. Frames are delivered whole
and in order, each by a callback of the loop, never from inside the call that sent it. Does not own the way
(``memory_wires``) or who may connect (``memory_transport``).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context

from cluster.protocol.errors import ProtocolError
from cluster.protocol.framing import FrameTooLarge
from cluster.seams.memory_wires import MemoryWires
from cluster.seams.storage import FileRange, Payload
from cluster.seams.transport import AcceptHandler, FrameHandler

logger = logging.getLogger(__name__)


class MemoryConnection:
    """One end of a connection, on ``node``. ``peer`` is what its owner calls the other end."""

    def __init__(
        self, wires: MemoryWires, node: str, other_node: str, peer: str, max_frame_bytes: int, context: Context
    ) -> None:
        self.context = context
        #: Told, in this context, of every frame that the other end was given.
        self.on_taken: Callable[[], object] | None = None
        self._wires = wires
        self._node = node
        self._other_node = other_node
        self._peer = peer
        self._max_frame_bytes = max_frame_bytes
        self._other: MemoryConnection | None = None
        self._handler: FrameHandler | None = None
        self._inbox: deque[bytearray] = deque()
        # What travels from here, oldest first: whichever timer fires first brings the first of them.
        self._travelling: deque[Callable[[MemoryConnection], None]] = deque()
        self._in_flight_bytes = 0
        self._last_arrival = 0.0
        self._paused = False
        self._closing = False
        self._lost = False
        self._gone = False

    def __repr__(self) -> str:
        return (
            f"MemoryConnection({self._node} -> {self._other_node} {self._peer}, {self._in_flight_bytes} bytes queued)"
        )

    def join(self, other: MemoryConnection) -> None:
        """Be one end of a connection, which has no listener yet."""
        self._other = other
        self._wires.opened(self)

    def open(self, accept: AcceptHandler) -> None:
        """Have a handler, which is given what has arrived already."""
        if not self._gone:
            self._handler = accept(self)
            asyncio.get_running_loop().call_soon(self._deliver, context=self.context)

    @property
    def peer(self) -> str:
        return self._peer

    @property
    def is_gone(self) -> bool:
        """Whether ``on_closed`` was called."""
        return self._gone

    @property
    def queued_bytes(self) -> int:
        """Bytes sent from here that the other end's handler was not given yet."""
        return self._in_flight_bytes

    def send_frame(self, parts: Sequence[Payload]) -> None:
        if self._closing or self._gone:
            return
        frame = bytearray()
        for part in parts:
            frame += part.read() if isinstance(part, FileRange) else part
        if self._wires.loses(self._node, self._other_node):
            self._lost = True
            return
        self._in_flight_bytes += len(frame)
        self._send(len(frame) + 4, lambda other: other._arrived(frame))

    def is_left(self) -> bool:
        return self._gone

    def keep_request(self, size_bytes: int) -> None:
        """Nothing has a bound here."""

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        if self._paused:
            self._paused = False
            asyncio.get_running_loop().call_soon(self._deliver, context=self.context)

    def close(self) -> None:
        if not self._closing and not self._gone:
            self._closing = True
            # What was sent before goes before.
            self._send(0, lambda other: other.reset("closed by the peer"))
            self._end_soon("closed by its owner")

    def abort(self) -> None:
        if not self._gone:
            self._closing = True
            self._send(0, lambda other: other.reset("aborted by the peer"))
            self._end_soon("aborted by its owner")

    def send_eof(self) -> None:
        """Half-close: send no more, still read. For tests of what a peer of real sockets may do."""
        self._send(0, lambda other: other._ended())

    def reset(self, reason: str) -> None:
        """End this end, now."""
        if self._gone:
            return
        self._gone = self._closing = True
        self._inbox.clear()
        self._wires.closed(self)
        handler, self._handler = self._handler, None
        if handler is not None:
            try:
                handler.on_closed(reason)
            except Exception:
                logger.exception("the handler of %s failed as its connection closed", self._peer)

    def vanish(self) -> None:
        """The process of this end is gone: no one here is told, and the peer learns of the end."""
        if not self._gone:
            self._send(0, lambda other: other.reset("the peer is gone"))
            self._gone = self._closing = True
            self._handler = None
            self._wires.closed(self)

    def lost_something(self, source: str, destination: str) -> bool:
        """Whether either direction of this connection dropped a frame between these nodes."""
        if (self._node, self._other_node) == (source, destination):
            return self._lost
        other = self._other
        return other is not None and (self._other_node, self._node) == (source, destination) and other._lost

    def _send(self, size_bytes: int, act: Callable[[MemoryConnection], None]) -> None:
        if self._other is None:
            return
        self._travelling.append(act)
        self._last_arrival = self._wires.carry(
            self._node, self._other_node, size_bytes, self._last_arrival, self._bring_next, self._other.context
        )

    def _bring_next(self) -> None:
        act = self._travelling.popleft()
        if self._other is not None:
            act(self._other)

    def _end_soon(self, reason: str) -> None:
        asyncio.get_running_loop().call_soon(self.reset, reason, context=self.context)

    def _arrived(self, frame: bytearray) -> None:
        self._inbox.append(frame)
        self._deliver()

    def _deliver(self) -> None:
        while self._inbox and self._handler is not None and not (self._paused or self._closing):
            frame = self._inbox.popleft()
            if self._other is not None:
                self._other._taken(len(frame))
            try:
                if len(frame) > self._max_frame_bytes:
                    raise FrameTooLarge(f"a frame of {len(frame)} bytes, the limit is {self._max_frame_bytes}")
                self._handler.on_frame(memoryview(frame))
            except ProtocolError as error:
                logger.warning("closing the connection from %s: %s", self._peer, error)
                self.close()
            except Exception:
                logger.exception("closing the connection from %s: its handler failed", self._peer)
                self.close()

    def _taken(self, size_bytes: int) -> None:
        self._in_flight_bytes -= size_bytes
        if self.on_taken is not None:
            asyncio.get_running_loop().call_soon(self.on_taken, context=self.context)

    def _ended(self) -> None:
        if self._handler is not None and not self._closing:
            self._handler.on_eof()
