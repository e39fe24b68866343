"""LightestFirst: one piece of work at a time, or a few, and of those that wait the lightest first.

Owns the order, so that what takes a millisecond does not wait for a hundred pieces that take a second each. Every
fourth slot is for the one that has waited longest, so that nothing waits forever. Does not own the work, nor how long
it takes: the caller names a weight, in bytes or what takes as long.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

#: Of this many slots one is for the one that has waited longest.
OLDEST_EACH = 4


def next_for_slot(waiting: Sequence[tuple[int, int]], slot: int) -> int:
    """The index of the one that gets a slot, of (weight, arrival) of each that waits; ``slot`` counts from 1."""
    if slot % OLDEST_EACH == 0:
        return min(range(len(waiting)), key=lambda index: waiting[index][1])
    return min(range(len(waiting)), key=lambda index: waiting[index])


class Slot:
    """The room in a lane of one piece of work that runs. ``leave`` gives it back early; it is given back once."""

    __slots__ = ("_lane", "_weight", "has_waited")

    def __init__(self, lane: LightestFirst, weight: int, has_waited: bool) -> None:
        self._lane: LightestFirst | None = lane
        self._weight = weight
        #: Whether it had to wait for others.
        self.has_waited = has_waited

    def leave(self) -> None:
        lane, self._lane = self._lane, None
        if lane is not None:
            lane._leave(self._weight)


class LightestFirst:
    """Of one event loop. Pieces run together while their weights come to ``at_once`` at most; one always may."""

    def __init__(self, at_once: int = 0) -> None:
        self._at_once = at_once
        self._running = 0
        self._weight = 0
        self._slots = 0
        self._arrivals = 0
        #: Those that wait, and (weight, arrival) of each.
        self._futures: list[asyncio.Future[None]] = []
        self._waiting: list[tuple[int, int]] = []

    def __repr__(self) -> str:
        return f"LightestFirst({'busy' if self.is_busy else 'free'}, {len(self._waiting)} wait)"

    @property
    def is_busy(self) -> bool:
        return self._running > 0

    @asynccontextmanager
    async def slot(self, weight: int) -> AsyncIterator[Slot]:
        """A slot for the caller, who may have to wait for it."""
        waits = bool(self._waiting) or not self._has_room(weight)
        if waits:
            await self._wait(weight)
        else:
            self._enter(weight)
        slot = Slot(self, weight, waits)
        try:
            yield slot
        finally:
            slot.leave()

    def _has_room(self, weight: int) -> bool:
        return not self._running or self._weight + weight <= self._at_once

    def _enter(self, weight: int) -> None:
        self._running += 1
        self._weight += weight

    def _leave(self, weight: int) -> None:
        self._running -= 1
        self._weight -= weight
        self._pass_on()

    async def _wait(self, weight: int) -> None:
        self._arrivals += 1
        future = asyncio.get_running_loop().create_future()
        self._futures.append(future)
        self._waiting.append((weight, self._arrivals))
        try:
            await future
        except asyncio.CancelledError:
            if not future.cancelled():
                # It has a slot already, which is another's then.
                self._leave(weight)
            raise

    def _pass_on(self) -> None:
        """Give slots to those that are next, as far as there is room: the next one is waited for."""
        while self._waiting:
            index = next_for_slot(self._waiting, self._slots + 1)
            future, (weight, _) = self._futures[index], self._waiting[index]
            if not future.done() and not self._has_room(weight):
                return
            del self._waiting[index], self._futures[index]
            if not future.done():
                self._slots += 1
                self._enter(weight)
                future.set_result(None)
