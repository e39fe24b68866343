"""Selector: connections for a client that has a thread of its own and no event loop. Owns the seam's shape.

The transport of brokers and of the asynchronous client is ``cluster.seams.transport``; this one is for programs that
have a loop of their own or none: one thread polls, and any thread may wake it up. A connection carries Kafka frames and
is known by the id of its node: there is one to each, or none. Kafka's class of the same name (``Selector``). The form
on sockets is ``cluster.seams.socket_selector``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cluster.seams.storage import Bytes


class SelectorHandler(Protocol):
    """Who owns the connections. Called by ``poll`` alone, in its thread; may send, connect and close meanwhile."""

    def on_connected(self, node_id: int) -> None: ...

    def on_frame(self, node_id: int, frame: memoryview) -> None:
        """A whole frame without its size prefix; the view is valid only during this call."""
        ...

    def on_flushed(self, node_id: int) -> None:
        """The kernel took what ``send`` had to keep."""
        ...

    def on_closed(self, node_id: int, reason: str) -> None:
        """The connection is gone, or was never made; not called for one that ``close`` ended."""
        ...


class Selector(Protocol):
    """All connections of one client. Only ``wakeup`` may be called from other threads."""

    def connect(self, node_id: int, host: str, port: int, address_index: int) -> None:
        """Begin to connect; ``on_connected`` or ``on_closed`` follows. Resolving the host may block.

        ``address_index``, counted around, chooses among the host's addresses. Raises ``OSError`` if the host is
        unknown or the attempt fails at once.
        """
        ...

    def send(self, node_id: int, parts: Sequence[Bytes]) -> bool:
        """Send one frame (the size prefix is added here). Never blocks; buffers must not be changed afterwards.

        True if the kernel took all of it, else ``on_flushed`` or ``on_closed`` follows. Raises ``KeyError`` for a node
        without connection.
        """
        ...

    def is_sending(self, node_id: int) -> bool:
        """Whether a frame waits for the kernel to take the rest of it: until ``on_flushed`` or ``on_closed``."""
        ...

    def close(self, node_id: int) -> None:
        """Close at once and drop what was not sent. Does nothing without a connection."""
        ...

    def poll(self, timeout_ms: float | None, handler: SelectorHandler) -> None:
        """Wait until something happens, for ``timeout_ms`` at most (None: forever), and tell the handler."""
        ...

    def wakeup(self) -> None:
        """Let ``poll`` return: the one that waits, or else the next. From any thread, also after ``shutdown``."""
        ...

    def shutdown(self) -> None:
        """Close everything. No other call but ``wakeup`` may follow."""
        ...
