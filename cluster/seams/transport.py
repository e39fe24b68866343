"""Transport: the only place that opens sockets. Owns the seam's shape: connections that carry Kafka frames.

A frame is an int32 size and that many bytes (docs/reference/kafka.md "Framing and primitives"). The forms are
``cluster.seams.asyncio_transport`` (BufferedProtocol, frames parsed in place) and ``cluster.seams.memory_transport``
(in one process, for simulation). What a frame means is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from cluster.seams.storage import Payload

#: ``socket.request.max.bytes``
MAX_FRAME_BYTES = 104_857_600


class FrameHandler(Protocol):
    """One side of one connection, as its owner sees it. Calls come from the event loop, in order."""

    def on_frame(self, frame: memoryview) -> None:
        """A whole frame without its size prefix.

        The view is writable and valid only during this call: the buffer is used again. An exception closes this
        connection alone.
        """
        ...

    def on_eof(self) -> None:
        """The peer will send no more (it half-closed), and every frame it sent before was delivered.

        Called at most once, never after ``on_closed``. The connection stays open for writing: an owner that still
        owes answers sends them and then calls ``close()``; an owner that owes nothing, or that cannot use a
        half-closed connection (a client), calls ``close()`` here. An owner that never does keeps the connection.
        """
        ...

    def on_closed(self, reason: str) -> None:
        """The connection is gone, for whatever reason; called exactly once, last."""
        ...


class Connection(Protocol):
    """One open connection."""

    @property
    def peer(self) -> str:
        """``host:port`` of the other end."""
        ...

    @property
    def queued_bytes(self) -> int:
        """Bytes accepted by ``send_frame`` and not yet taken by the kernel."""
        ...

    def send_frame(self, parts: Sequence[Payload]) -> None:
        """Queue one frame (the size prefix is added here). Does nothing once closed. Never blocks.

        Buffers other than FileRange must not be changed by the caller afterwards.
        """
        ...

    def is_left(self) -> bool:
        """Whether the connection is gone or the peer sends no more, as far as the system knows: also while reading is
        paused, when ``on_eof`` does not come yet."""
        ...

    def keep_request(self, size_bytes: int) -> None:
        """The frame that is being delivered, of this size, is worked on after ``on_frame``; 0 when that is over, also
        after ``on_closed``. It counts as long for ``queued_max_bytes``."""
        ...

    def pause_reading(self) -> None:
        """Deliver no more frames until ``resume_reading``; what arrived meanwhile is kept, bounded."""
        ...

    def resume_reading(self) -> None: ...

    def close(self) -> None:
        """Send what is queued, then close. A half-closed peer still gets it."""
        ...

    def abort(self) -> None:
        """Close at once and drop what is queued."""
        ...


class Listener(Protocol):
    """One listening port."""

    @property
    def port(self) -> int: ...

    async def close(self) -> None:
        """Stop listening and abort the connections accepted here."""
        ...


AcceptHandler = Callable[[Connection], FrameHandler]


class Transport(Protocol):
    """Opens and accepts connections."""

    async def listen(
        self,
        host: str,
        port: int,
        accept: AcceptHandler,
        *,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        send_buffer_bytes: int = -1,
        queued_max_bytes: int = -1,
        unread_max_bytes: int = -1,
        is_for_peers: bool = False,
    ) -> Listener:
        """Listen; port 0 picks one. ``send_buffer_bytes`` is SO_SNDBUF of what is accepted, -1 the system's.
        ``queued_max_bytes`` bounds what large frames of all its connections take together, until they were worked on;
        ``unread_max_bytes`` what their peers leave unread. -1 is no bound. ``is_for_peers``: no client connects here,
        and no flood of them keeps anyone out. Raises ``OSError`` if the port is taken."""
        ...

    async def connect(
        self, host: str, port: int, accept: AcceptHandler, *, timeout_ms: int, max_frame_bytes: int = MAX_FRAME_BYTES
    ) -> Connection:
        """Open a connection. Raises ``OSError`` or ``TimeoutError``."""
        ...
