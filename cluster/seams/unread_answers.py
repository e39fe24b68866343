"""What the clients of one listener leave unread, together: no number of them takes more memory than this.

Each connection has a bound of its own, above which no more of its requests are read; but the answer that goes beyond it
may have megabytes, and there may be thousands of connections. When all of them together keep too much, those that have
not read for the longest time are closed. Ranges of files do not count, as they are not in memory, nor does what is
within the bound of each connection. Does not own the queues (``send_queue``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

#: A connection that keeps no more than this frees nothing worth its end.
LEAST_BYTES = 65_536


class Unread(Protocol):
    """A connection whose peer does not read, or not as fast as it asks."""

    def give_up(self) -> None:
        """It must go, and ``read`` is called now or soon."""
        ...


class UnreadAnswers:
    """Of one listener."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        #: In the order in which their peers ceased to read.
        self._sizes: dict[Unread, int] = {}
        self._total_bytes = 0

    def __repr__(self) -> str:
        return f"UnreadAnswers({self._total_bytes} of {self._limit_bytes} bytes, {len(self._sizes)} connections)"

    def keep(self, connection: Unread, size_bytes: int) -> None:
        """A connection keeps this much for its peer now."""
        if size_bytes <= LEAST_BYTES:
            self.read(connection)
            return
        self._total_bytes += size_bytes - self._sizes.get(connection, 0)
        self._sizes[connection] = size_bytes
        while self._total_bytes > self._limit_bytes and len(self._sizes) > 1:
            oldest = next(iter(self._sizes))
            self.read(oldest)
            oldest.give_up()

    def progressed(self, connection: Unread, size_bytes: Callable[[], int]) -> None:
        """Its peer has read some of it, and is no longer among those that have not read for the longest time."""
        if connection in self._sizes:
            self.read(connection)
            self.keep(connection, size_bytes())

    def read(self, connection: Unread) -> None:
        """Its peer has read, or is gone."""
        self._total_bytes -= self._sizes.pop(connection, 0)
