"""LightestFirst: one piece of work at a time, and of those that wait the lightest first.

Owns the order, so that what takes a millisecond does not wait for a hundred pieces that take a second each. Every
fourth turn is for the one that has waited longest, so that nothing waits forever. Does not own the work, nor how long
it takes: the caller names a weight, in bytes or what takes as long.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

#: Of this many turns one is for the one that has waited longest.
OLDEST_EACH = 4


def next_turn(waiting: Sequence[tuple[int, int]], turn: int) -> int:
    """The index of the one whose turn it is, of (weight, arrival) of each that waits; ``turn`` counts from 1."""
    if turn % OLDEST_EACH == 0:
        return min(range(len(waiting)), key=lambda index: waiting[index][1])
    return min(range(len(waiting)), key=lambda index: waiting[index])


class LightestFirst:
    """Of one event loop."""

    def __init__(self) -> None:
        self.is_busy = False
        self._turns = 0
        self._arrivals = 0
        #: Those that wait, and (weight, arrival) of each.
        self._futures: list[asyncio.Future[None]] = []
        self._waiting: list[tuple[int, int]] = []

    def __repr__(self) -> str:
        return f"LightestFirst({'busy' if self.is_busy else 'free'}, {len(self._waiting)} wait)"

    @asynccontextmanager
    async def turn(self, weight: int) -> AsyncIterator[bool]:
        """The caller's turn: no other has one meanwhile. What is yielded is whether it had to wait for it."""
        waits = self.is_busy
        if waits:
            await self._wait(weight)
        self.is_busy = True
        try:
            yield waits
        finally:
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
                # Its turn has come already, and is another's then.
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        """It stays busy until the next one continues."""
        while self._waiting:
            self._turns += 1
            index = next_turn(self._waiting, self._turns)
            del self._waiting[index]
            future = self._futures.pop(index)
            if not future.done():
                future.set_result(None)
                return
        self.is_busy = False
