"""The wheel that ends the wait of requests.

Owns deadlines, and that each is told once, at its time. Does not own what waits (``purgatory``).
"""

from __future__ import annotations

import asyncio
import heapq
from typing import Protocol

#: The grain of the wheel: a wait may last this much longer than asked, and a tick ends all that are due at once.
TICK_MS = 5
#: Empty buckets are swept out at this number, once they are as many as the others.
_SWEEP_AT = 1024


class Expiring(Protocol):
    """Something that does not wait forever."""

    def expire(self) -> None:
        """The time is over. Not called after ``TimerWheel.cancel``."""
        ...


class TimerWheel:
    """Deadlines in buckets of ``TICK_MS``, one timer of the loop for all of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._buckets: dict[int, dict[Expiring, None]] = {}
        self._ticks: list[int] = []
        self._empty = 0
        self._sweep_at = _SWEEP_AT
        self._timer: asyncio.TimerHandle | None = None
        self._timer_tick = 0

    def __repr__(self) -> str:
        return f"<TimerWheel {sum(map(len, self._buckets.values()))} waiting>"

    def waiting(self, kind: type[Expiring]) -> int:
        """How many of a kind wait. May be called from another thread, and is then as true as such a number can be."""
        return sum(isinstance(operation, kind) for bucket in list(self._buckets.values()) for operation in list(bucket))

    def add(self, operation: Expiring, delay_ms: int) -> int:
        """Call ``operation.expire()`` after ``delay_ms``; returns the tick to give to ``cancel``."""
        tick = int(self._loop.time() * 1000 + delay_ms) // TICK_MS + 1
        bucket = self._buckets.get(tick)
        if bucket is None:
            self._buckets[tick] = {operation: None}
            heapq.heappush(self._ticks, tick)
            if self._timer is None or tick < self._timer_tick:
                self._arm()
        else:
            if not bucket:
                self._empty -= 1
            bucket[operation] = None
        return tick

    def cancel(self, operation: Expiring, tick: int) -> None:
        """Forget an operation; nothing happens if it has expired already."""
        bucket = self._buckets.get(tick)
        if bucket is not None and bucket.pop(operation, tick) is None and not bucket:
            # Not removed at once: the next request may want the same tick.
            self._empty += 1
            if self._empty >= self._sweep_at:
                self._sweep()

    def _sweep(self) -> None:
        """Forget the buckets that no one waits in: their deadlines may be weeks away."""
        self._buckets = {tick: bucket for tick, bucket in self._buckets.items() if bucket}
        self._ticks = sorted(self._buckets)
        self._empty = 0
        self._sweep_at = max(_SWEEP_AT, len(self._buckets))

    def close(self) -> None:
        """Forget everything."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._buckets.clear()
        self._ticks.clear()
        self._empty = 0

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_tick = self._ticks[0]
        self._timer = self._loop.call_at(self._timer_tick * TICK_MS / 1000, self._turn)

    def _turn(self) -> None:
        self._timer = None
        now_tick = int(self._loop.time() * 1000) // TICK_MS
        # The loop may call a timer within its clock's resolution too early: the tick it was armed for is due.
        now_tick = max(now_tick, self._timer_tick)
        while self._ticks and self._ticks[0] <= now_tick:
            bucket = self._buckets.pop(heapq.heappop(self._ticks))
            self._empty -= not bucket
            for operation in bucket:
                operation.expire()
        if self._ticks and self._timer is None:
            self._arm()
