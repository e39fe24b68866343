"""Clock: the only place that reads time. Owns the seam, the system's clock and a clock that tests move.

Does not own timers: those are asyncio's, real or virtual.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What the cluster may ask about time."""

    def monotonic_ns(self) -> int:
        """Nanoseconds on one machine-wide monotonic clock (``CLOCK_MONOTONIC``); comparable across processes."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds on the same clock."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since the Unix epoch, for record timestamps and file names."""
        ...

    def wall_ns(self) -> int:
        """Nanoseconds since then, for the caller once for every record."""
        ...


class SystemClock:
    """The machine's own clocks."""

    #: The functions themselves: they are asked twice for every request, and once for every record.
    monotonic_ns = staticmethod(time.monotonic_ns)
    wall_ns = staticmethod(time.time_ns)

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


class ManualClock:
    """A clock that stands still until it is moved; for tests and simulation."""

    def __init__(self, start_ms: int = 1_700_000_000_000) -> None:
        self._start_ms = start_ms
        self._elapsed_ns = 0

    def advance_ms(self, milliseconds: float) -> None:
        """Move forward. Raises ``ValueError`` on a negative step: a monotonic clock never goes back."""
        if milliseconds < 0:
            raise ValueError("a monotonic clock never goes back")
        self._elapsed_ns += int(milliseconds * 1_000_000)

    def monotonic_ns(self) -> int:
        return self._elapsed_ns

    def monotonic_ms(self) -> int:
        return self._elapsed_ns // 1_000_000

    def wall_ms(self) -> int:
        return self.wall_ns() // 1_000_000

    def wall_ns(self) -> int:
        return self._start_ms * 1_000_000 + self._elapsed_ns
