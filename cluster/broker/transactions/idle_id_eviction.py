"""IdleIdEviction: when ids that are idle, though not long enough to be forgotten in any case, make room for new ones.

Owns that all ids are gone through once in a while at most, however many new ones are refused, and for whose sake. Does
not own which ids make room (``cluster.coordinator.transaction.expiry``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from cluster.coordinator.transaction.coordinator import TransactionCoordinator
from cluster.coordinator.transaction.decisions import TxnDecision

#: An id without a transaction that has not changed for this long makes room for another if there are enough.
EVICTABLE_AFTER_MS = 300_000
#: The pause between two looks for such ids: each goes through all of them.
EVICTION_PAUSE_S = 10.0

#: Carries out decisions on all ids, some at a time, and returns the number of their effects.
Each = Callable[[Callable[[list[tuple[int, str]], int], TxnDecision]], Awaitable[int]]


class IdleIdEviction:
    """Of one coordinator."""

    def __init__(self, coordinator: TransactionCoordinator, each: Each) -> None:
        self._coordinator = coordinator
        self._each = each
        self._task: asyncio.Task[None] | None = None
        #: Whose new ids were refused since the last look began.
        self._hosts: set[str] = set()

    def __repr__(self) -> str:
        return f"<IdleIdEviction{'' if self._task is None else ', under way'}>"

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def room_refused(self, client_host: str) -> None:
        """A new id of that host was refused for lack of room: look for idle ids, unless a look is under way."""
        self._hosts.add(client_host)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._make_room())

    async def _make_room(self) -> None:
        hosts, self._hosts = self._hosts, set()
        make_room = partial(self._coordinator.make_room, idle_ms=EVICTABLE_AFTER_MS, hosts=hosts)
        try:
            if not await self._each(partial(make_room, only_unused=True)):
                await self._each(partial(make_room, only_unused=False))
            await asyncio.sleep(EVICTION_PAUSE_S)
        finally:
            self._task = None
