"""Timers: the periodic work of one broker's files. Owns the repetition, whatever the work raises, and what becomes of a
disk that fails in it.

Does not own the work (``checkpoints.py``, ``housekeeping.py``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from cluster.log.errors import LogError
from cluster.seams.out_of_memory import halt_if_out_of_memory
from cluster.seams.units import seconds_of_ms

logger = logging.getLogger(__name__)

Work = Callable[[], Awaitable[None]]


class Timers:
    """Tasks that do their work again and again, until ``stop``."""

    def __init__(self, storage_failed: Callable[[LogError], None]) -> None:
        self._storage_failed = storage_failed
        self._tasks: list[asyncio.Task[None]] = []

    def __repr__(self) -> str:
        return f"<Timers: {len(self._tasks)}>"

    def start(self, works: Iterable[tuple[int, Work]]) -> None:
        """Do each piece of work at its interval in milliseconds, the first time after one interval; not at all if that
        is 0."""
        loop = asyncio.get_running_loop()
        self._tasks += [
            loop.create_task(self._repeat(interval_ms, work)) for interval_ms, work in works if interval_ms > 0
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _repeat(self, interval_ms: int, work: Work) -> None:
        while True:
            await asyncio.sleep(seconds_of_ms(interval_ms))
            try:
                await work()
            except LogError as error:
                logger.error("%s", error)
                self._storage_failed(error)
            except Exception as error:
                halt_if_out_of_memory(error)
                # Work that ends with its first surprise would be missed by no one until the disk is full.
                logger.exception("%s failed, and is tried again", getattr(work, "__qualname__", work))
