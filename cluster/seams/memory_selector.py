"""MemorySelector: the selector seam on an in-memory network, on whatever loop is running, real or virtual.

Owns the connections of one client that has no event loop, the frames that wait for room, what has happened and was
not told yet, and, with ``LoopRunner``, when such a client has its next turn. ``poll`` never waits: it tells what is
there and keeps in mind for how long it should have waited. Does not own the network (``memory_transport``): a frame
is sent and arrives whole.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import cast

from cluster.seams.memory_connection import MemoryConnection
from cluster.seams.memory_transport import MemoryTransport
from cluster.seams.runner import RunnerStep
from cluster.seams.selector import SelectorHandler
from cluster.seams.storage import Bytes
from cluster.seams.transport import MAX_FRAME_BYTES, Connection
from cluster.seams.units import seconds_of_ms

#: What the buffers of two sockets hold together, about.
ROOM_BYTES = 1 << 20
#: An attempt to connect has no end of its own: its owner gives it up.
_FOREVER_MS = 1_000_000_000
#: Loop times are floating-point seconds: a timer must not fire before the millisecond that it is for.
_SLACK_S = 1e-6

_Event = Callable[[SelectorHandler], None]


class _MemoryChannel:
    """One connection, or the attempt at one; the handler of its end."""

    __slots__ = ("_room_bytes", "_selector", "attempt", "connection", "is_closed", "node_id", "queue")

    def __init__(self, node_id: int, room_bytes: int, selector: MemorySelector) -> None:
        self.node_id = node_id
        self.attempt: asyncio.Task[None] | None = None
        self.connection: MemoryConnection | None = None
        self.is_closed = False
        #: Frames that the connection has no room for yet.
        self.queue: deque[Sequence[Bytes]] = deque()
        self._room_bytes = room_bytes
        self._selector = selector

    def __repr__(self) -> str:
        return f"_MemoryChannel({self.node_id}, {self.connection!r}, {len(self.queue)} frames queued)"

    def opened(self, connection: Connection) -> _MemoryChannel:
        # The transport of this selector makes no others.
        self.connection = cast(MemoryConnection, connection)
        self.connection.on_taken = self._has_room
        self._selector.happened(self, lambda handler: handler.on_connected(self.node_id))
        return self

    def send(self) -> None:
        """Send what is queued, as far as there is room."""
        while self.queue and self.connection is not None and self.connection.queued_bytes < self._room_bytes:
            self.connection.send_frame(self.queue.popleft())

    def close(self) -> None:
        self.is_closed = True
        self.queue.clear()
        if self.connection is not None:
            self.connection.abort()
        elif self.attempt is not None:
            self.attempt.cancel()

    def _has_room(self) -> None:
        if self.queue:
            self.send()
            if not self.queue:
                self._selector.happened(self, lambda handler: handler.on_flushed(self.node_id))

    # What the transport calls.

    def on_frame(self, frame: memoryview) -> None:
        kept = bytearray(frame)
        self._selector.happened(self, lambda handler: handler.on_frame(self.node_id, memoryview(kept)))

    def on_eof(self) -> None:
        self.on_closed("closed by the broker")

    def on_closed(self, reason: str) -> None:
        def tell(handler: SelectorHandler) -> None:
            self._selector.drop(self)
            handler.on_closed(self.node_id, reason)

        self._selector.happened(self, tell)


class MemorySelector:
    """``on_event`` is called when there is something for ``poll`` to tell, or it was woken: by the loop, or by anyone
    who wakes it. ``wait_ms`` is for how long the last poll was to wait; 0 if it had something to tell. A connection
    takes another frame as long as less than ``room_bytes`` of those before were not taken in at the other end.
    """

    def __init__(
        self, transport: MemoryTransport, *, room_bytes: int = ROOM_BYTES, max_frame_bytes: int = MAX_FRAME_BYTES
    ) -> None:
        self.on_event: Callable[[], object] = bool
        self.wait_ms: float | None = 0
        self._transport = transport
        self._room_bytes = room_bytes
        self._max_frame_bytes = max_frame_bytes
        self._context = copy_context()
        self._channels: dict[int, _MemoryChannel] = {}
        self._events: deque[tuple[_MemoryChannel, _Event]] = deque()
        self._is_woken = False

    def __repr__(self) -> str:
        return f"MemorySelector({list(self._channels.values())!r}, {len(self._events)} events)"

    # The seam

    def connect(self, node_id: int, host: str, port: int, address_index: int) -> None:
        channel = self._channels[node_id] = _MemoryChannel(node_id, self._room_bytes, self)
        attempt = self._connect(channel, host, port)
        channel.attempt = asyncio.get_running_loop().create_task(attempt, context=self._context)

    def send(self, node_id: int, parts: Sequence[Bytes]) -> bool:
        channel = self._channels[node_id]
        if channel.connection is None:
            raise KeyError(node_id)
        channel.queue.append(parts)
        channel.send()
        return not channel.queue

    def is_sending(self, node_id: int) -> bool:
        channel = self._channels.get(node_id)
        return channel is not None and bool(channel.queue)

    def close(self, node_id: int) -> None:
        channel = self._channels.get(node_id)
        if channel is not None:
            self.drop(channel)

    def poll(self, timeout_ms: float | None, handler: SelectorHandler) -> None:
        self.wait_ms = 0 if self._events or self._is_woken else timeout_ms
        self._is_woken = False
        for _ in range(len(self._events)):
            channel, tell = self._events.popleft()
            # The handler may have closed it after something that came before.
            if not channel.is_closed:
                tell(handler)

    def wakeup(self) -> None:
        if not self._is_woken:
            self._is_woken = True
            self.on_event()

    def shutdown(self) -> None:
        for node_id in list(self._channels):
            self.close(node_id)
        self._events.clear()

    # What happens

    def drop(self, channel: _MemoryChannel) -> None:
        """Close a connection, whose node has none then."""
        channel.close()
        if self._channels.get(channel.node_id) is channel:
            del self._channels[channel.node_id]

    async def _connect(self, channel: _MemoryChannel, host: str, port: int) -> None:
        try:
            await self._transport.connect(
                host, port, channel.opened, timeout_ms=_FOREVER_MS, max_frame_bytes=self._max_frame_bytes
            )
        except OSError as error:
            channel.on_closed(str(error))

    def happened(self, channel: _MemoryChannel, event: _Event) -> None:
        """There is something to tell, unless the connection is closed before its turn."""
        if not channel.is_closed:
            self._events.append((channel, event))
            self.on_event()


class LoopRunner:
    """The runner seam in the running loop: a step when the selector has something to tell, was woken, or should have
    waited no longer. The program runs in the same loop, between the steps, so that it can never wait for one.
    """

    def __init__(self, selector: MemorySelector) -> None:
        self._selector = selector
        self._step: RunnerStep | None = None
        self._next: asyncio.Handle | None = None
        self._has_ended = False
        self._context = copy_context()

    def __repr__(self) -> str:
        return f"LoopRunner({self._selector!r})"

    def start(self, step: RunnerStep) -> None:
        self._step = step
        self._selector.on_event = self._soon
        self._soon()

    @property
    def is_current(self) -> bool:
        return True

    @property
    def has_ended(self) -> bool:
        return self._has_ended

    def join(self, timeout_s: float | None) -> bool:
        """Without waiting."""
        return self._has_ended

    def kill(self) -> None:
        """No step anymore, as if the process had been killed."""
        self._has_ended = True
        self._put_off()

    def _soon(self) -> None:
        if not self._has_ended and (self._next is None or isinstance(self._next, asyncio.TimerHandle)):
            self._put_off()
            self._next = asyncio.get_running_loop().call_soon(self._turn, context=self._context)

    def _put_off(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _turn(self) -> None:
        self._next = None
        if self._step is None or not self._step():
            self.kill()
            return
        wait_ms = self._selector.wait_ms
        if wait_ms == 0:
            self._soon()
        elif wait_ms is not None and self._next is None:
            loop = asyncio.get_running_loop()
            when = loop.time() + seconds_of_ms(wait_ms) + _SLACK_S
            self._next = loop.call_at(when, self._turn, context=self._context)
