"""The timers of groups, by name.

Owns that a name has one timer at most, and that timers that are due together share the turns of the loop: tens of
thousands may be, if clients want that. Does not own what follows when one is due.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from itertools import count

from cluster.broker.pauses import Shares
from cluster.coordinator.group.decisions import TimerChange, TimerName
from cluster.seams.units import seconds_of_ms

#: Cancelled timers that stay in the heap, besides as many as there are others.
_MOST_CANCELLED = 1000


class _Timer:
    """``name`` is None once it is cancelled."""

    __slots__ = ("deadline_ms", "name")

    def __init__(self, name: TimerName, deadline_ms: int) -> None:
        self.name: TimerName | None = name
        self.deadline_ms = deadline_ms


class GroupTimers:
    """``fired`` is called with a name and the deadline that it was set to. Lengths are the loop's: a wall clock that is
    set back prolongs none."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, shares: Shares, fired: Callable[[TimerName, int], None]
    ) -> None:
        self._loop = loop
        self._shares = shares
        self._fired = fired
        self._timers: dict[TimerName, _Timer] = {}
        #: By the loop's time, and then in the order in which they were set.
        self._heap: list[tuple[float, int, _Timer]] = []
        self._numbers = count()
        #: What calls ``_run``, and the loop's time at which it will.
        self._handle: asyncio.Handle | None = None
        self._handle_s = 0.0

    def __repr__(self) -> str:
        return f"<GroupTimers: {len(self._timers)}>"

    def __len__(self) -> int:
        return len(self._timers)

    def change(self, change: TimerChange, now_ms: int) -> None:
        """Set or cancel one, by a decision of ``now_ms``."""
        name, deadline_ms = change
        former = self._timers.pop(name, None)
        if former is not None:
            former.name = None
        if deadline_ms is not None:
            due_s = self._loop.time() + seconds_of_ms(max(0, deadline_ms - now_ms))
            timer = self._timers[name] = _Timer(name, deadline_ms)
            heapq.heappush(self._heap, (due_s, next(self._numbers), timer))
            self._arm(due_s)
        if len(self._heap) > 2 * len(self._timers) + _MOST_CANCELLED:
            self._heap = [entry for entry in self._heap if entry[2].name is not None]
            heapq.heapify(self._heap)

    def _arm(self, due_s: float) -> None:
        """Have ``_run`` called at this time, unless it is called before."""
        if self._handle is not None:
            if self._handle_s <= due_s:
                return
            self._handle.cancel()
        self._handle, self._handle_s = self._loop.call_at(due_s, self._run), due_s

    def _run(self) -> None:
        """Those that are due, as long as this turn of the loop is not used up."""
        # What is set meanwhile does not call this again: that is done in the end.
        self._handle_s = 0.0
        now_s = self._loop.time()
        try:
            while (timer := self._take(now_s)) is not None:
                self._fired(*timer)
                if self._shares.is_over():
                    break
        finally:
            self._handle = None
            if self._heap:
                self._arm(max(now_s, self._heap[0][0]))

    def _take(self, now_s: float) -> tuple[TimerName, int] | None:
        """One that is due, which is no longer set."""
        while self._heap and self._heap[0][0] <= now_s:
            _, _, timer = heapq.heappop(self._heap)
            if timer.name is not None:
                del self._timers[timer.name]
                return timer.name, timer.deadline_ms
        return None

    def close(self) -> None:
        """Cancel all."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._timers.clear()
        self._heap.clear()
