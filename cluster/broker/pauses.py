"""Pauses: long work on the event loop lets others have their turn.

Owns how long a share of such work is, the turn of the loop after it, and that work of many requests together takes
little more of a turn than that of one. What a broker does for itself (roles, checkpoints, the controller's work) has
shares of its own, so that no crowd of clients delays it. Does not own the work: answers that are made in shares
(``portions.py``), groups (``groups``), and what is done for each of thousands of logs (``checkpoints.py``,
``housekeeping.py``).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

#: How long long work is done in a turn before others have theirs; what is small may begin for as long after that.
SHARE_NS = 5_000_000
#: The share of what begins in a turn of which others have had their share already. Each further one is twice as long.
LEAST_SHARE_NS = 250_000
#: How long the shares of one request are, one after the other; from then on as the last of these.
SHARES_NS = tuple(LEAST_SHARE_NS << doubled for doubled in range(5))
#: Of this many shares one is for the one that has waited longest.
OLDEST_EACH = 16


class Shares:
    """Shares of the turns of one event loop. What is not done after its first one queues: who has had the fewest goes
    first, so that what is small does not wait for all that is large; every now and then the one that has waited
    longest. Those that continue in the same turn have a share's time together."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.now_ns = now_ns
        #: Those that wait with their arrival, by the shares that they have had.
        self._queues: tuple[deque[tuple[int, asyncio.Future[None]]], ...] = tuple(deque() for _ in SHARES_NS)
        self._arrivals = 0
        self._granted = 0
        self._is_turn_open = False
        self._turn_end_ns = 0
        self._is_granting = False

    def __repr__(self) -> str:
        return f"<Shares: {sum(map(len, self._queues))} wait>"

    def first_end_ns(self) -> int:
        """Until when something that begins now may be worked on; not at all if the turn is full."""
        now_ns = self._in_turn_ns()
        return max(self._turn_end_ns, min(now_ns + LEAST_SHARE_NS, self._turn_end_ns + SHARE_NS))

    def is_over(self) -> bool:
        """Whether this turn is used up, for work that cannot be divided."""
        return self._in_turn_ns() >= self._turn_end_ns

    def is_full(self) -> bool:
        """Whether nothing more should begin in this turn, however small it is."""
        return self._in_turn_ns() >= self._turn_end_ns + SHARE_NS

    async def next(self, had: int = 0) -> int:
        """Wait for the next share; the time at which it ends. ``had``: how many there were before."""
        loop = asyncio.get_running_loop()
        granted = loop.create_future()
        level = min(had, len(SHARES_NS) - 1)
        self._arrivals += 1
        self._queues[level].append((self._arrivals, granted))
        if not self._is_granting:
            self._is_granting = True
            loop.call_soon(self._grant)
        await granted
        return self._in_turn_ns() + SHARES_NS[level]

    async def fresh(self) -> bool:
        """Wait for a turn that is not used up, for work that cannot be divided: the shares of one turn are many.
        Whether it had to wait."""
        waits = self.is_over()
        while self.is_over():
            await self.next()
        return waits

    def _in_turn_ns(self) -> int:
        """Now, in a turn that begins with the first call in it."""
        now_ns = self.now_ns()
        if not self._is_turn_open:
            self._is_turn_open, self._turn_end_ns = True, now_ns + SHARE_NS
            asyncio.get_running_loop().call_soon(self._turn_ended)
        return now_ns

    def _turn_ended(self) -> None:
        self._is_turn_open = False

    def _grant(self) -> None:
        left_ns = SHARE_NS
        while (level := self._next_level()) is not None and SHARES_NS[level] <= left_ns:
            _, granted = self._queues[level].popleft()
            if not granted.done():
                granted.set_result(None)
                self._granted += 1
                left_ns -= SHARES_NS[level]
        self._is_granting = level is not None
        if self._is_granting:
            asyncio.get_running_loop().call_soon(self._grant)

    def _next_level(self) -> int | None:
        """How many shares the one that is next has had; None if none waits."""
        levels = [level for level, queue in enumerate(self._queues) if queue]
        if not levels or (self._granted + 1) % OLDEST_EACH:
            return levels[0] if levels else None
        return min(levels, key=lambda level: self._queues[level][0])


class Pauses:
    """For a caller that awaits much that is there already: awaited again and again, it lets others have their turn."""

    __slots__ = ("_had", "_shares", "_until_ns")

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self._until_ns = shares.first_end_ns()
        self._had = 1

    def __repr__(self) -> str:
        return f"Pauses(until {self._until_ns})"

    async def __call__(self) -> None:
        if self._shares.now_ns() >= self._until_ns:
            self._until_ns = await self._shares.next(self._had)
            self._had += 1
