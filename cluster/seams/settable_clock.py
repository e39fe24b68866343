"""A clock whose wall clock can be set, and made to run too fast or too slow. Owns that form of the Clock seam.

The monotonic clock is not changed: no one can set that of a real machine, and all processes of a run compare its times.
"""

from __future__ import annotations

import time


class Skew:
    """How far one wall clock is from that of all others."""

    def __init__(self) -> None:
        self._ahead_ns = 0
        self._drift_ppm = 0
        self._since_ns = 0

    def __repr__(self) -> str:
        return f"Skew({self._ahead_ns / 1e6:g} ms, {self._drift_ppm} ppm)"

    def set(self, ahead_ms: int, drift_ppm: int, now_ns: int) -> None:
        """Set it this far ahead from now on (behind if negative), and gaining this many microseconds per second."""
        self._ahead_ns = ahead_ms * 1_000_000
        self._drift_ppm = drift_ppm
        self._since_ns = now_ns

    def ahead_ns(self, now_ns: int) -> int:
        """``now_ns`` is the monotonic time."""
        if not self._drift_ppm:
            return self._ahead_ns
        return self._ahead_ns + (now_ns - self._since_ns) * self._drift_ppm // 1_000_000


class SettableClock:
    """The machine's clock with a skew."""

    monotonic_ns = staticmethod(time.monotonic_ns)

    def __init__(self) -> None:
        self.skew = Skew()

    def __repr__(self) -> str:
        return f"SettableClock({self.skew!r})"

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ns(self) -> int:
        return time.time_ns() + self.skew.ahead_ns(time.monotonic_ns())

    def wall_ms(self) -> int:
        return self.wall_ns() // 1_000_000
