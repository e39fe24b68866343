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

#: How long something is worked on before others have their turn.
SHARE_NS = 5_000_000
#: The first share of what begins in a turn of which others have had their share already.
LEAST_SHARE_NS = 500_000


class Shares:
    """Shares of the turns of one event loop. What has had its first one queues: in each turn, one of
    the queue continues."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.now_ns = now_ns
        self._queue: deque[asyncio.Future[None]] = deque()
        self._is_turn_open = False
        self._turn_end_ns = 0
        self._is_granting = False

    def __repr__(self) -> str:
        return f"<Shares: {len(self._queue)} wait>"

    def first_end_ns(self) -> int:
        """Until when something that begins now may be worked on."""
        now_ns = self.now_ns()
        if not self._is_turn_open:
            self._is_turn_open, self._turn_end_ns = True, now_ns + SHARE_NS
            asyncio.get_running_loop().call_soon(self._turn_ended)
        return max(self._turn_end_ns, now_ns + LEAST_SHARE_NS)

    def is_over(self) -> bool:
        """Whether this turn is used up, for work that cannot be divided."""
        return self.first_end_ns() > self._turn_end_ns

    async def next(self) -> int:
        """Wait for the next share; the time at which it ends."""
        loop = asyncio.get_running_loop()
        granted = loop.create_future()
        self._queue.append(granted)
        if not self._is_granting:
            self._is_granting = True
            loop.call_soon(self._grant)
        await granted
        return self.now_ns() + SHARE_NS

    def _turn_ended(self) -> None:
        self._is_turn_open = False

    def _grant(self) -> None:
        while self._queue:
            granted = self._queue.popleft()
            if not granted.done():
                granted.set_result(None)
                break
        self._is_granting = bool(self._queue)
        if self._is_granting:
            asyncio.get_running_loop().call_soon(self._grant)


class Pauses:
    """For a caller that awaits much that is there already: awaited again and again, it lets others have their turn."""

    __slots__ = ("_shares", "_until_ns")

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self._until_ns = shares.first_end_ns()

    def __repr__(self) -> str:
        return f"Pauses(until {self._until_ns})"

    async def __call__(self) -> None:
        if self._shares.now_ns() >= self._until_ns:
            self._until_ns = await self._shares.next()
