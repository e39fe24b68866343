"""Takes all memory that a process may still get, and gives it back: for experiments with a process of one's own.

The limit is on the address space of this process alone (``RLIMIT_AS``, which anyone may lower for themselves), so
nothing is taken from the machine but what the process has already. Under the limit every free block of its heaps is
taken, down to small ones: whatever it does next has to do with what was left to it.
"""

from __future__ import annotations

import resource
import sys

#: From large to small: what does not fit anymore is tried in smaller pieces. The last ones are objects of Python's own
#: pools, which hardly anything does without.
_PIECES_BYTES = (1 << 20, 1 << 16, 1 << 12, 480, 96)
#: No more than these: the rest of the smallest is left to the process.
_MOST_PIECES = 200_000


class MemoryBalloon:
    """What was taken."""

    def __init__(self) -> None:
        self._taken: list[bytearray | bytes] = []

    def __repr__(self) -> str:
        return f"MemoryBalloon({len(self._taken)} pieces)"

    def fill(self, spare_bytes: int) -> None:
        """Take everything but this. Raises ``OSError`` where a process cannot be limited."""
        if sys.platform != "linux":
            raise OSError("only Linux limits the address space of a process")
        with open("/proc/self/statm", encoding="ascii") as file:
            size_bytes = int(file.read().split()[0]) * resource.getpagesize()
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        # room of its own for the list, which would have to be copied to grow
        taken = self._taken = [b""] * _MOST_PIECES
        resource.setrlimit(resource.RLIMIT_AS, (size_bytes, most))
        number, sparing = 0, 0
        for piece_bytes in _PIECES_BYTES:
            try:
                while number < _MOST_PIECES:
                    taken[number] = bytes(piece_bytes)
                    number += 1
            except MemoryError:
                continue
        while number > 0 and sparing < spare_bytes:
            number -= 1
            sparing += len(taken[number])
            taken[number] = b""

    def release(self) -> None:
        """Give it back, and lift the limit."""
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        self._taken = []
