"""Checkpoints: what a broker writes down every few seconds, without holding up its event loop.

Owns when high watermarks, recovery points and log starts are written, when logs are synced, and when idle producers
are forgotten. Does not own the files (``cluster.log.manager``). Syncing blocks: it runs off the loop (``blocking``),
under a lock that any code that adds or deletes logs takes too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from cluster.broker.timers import Timers
from cluster.config.broker import BrokerConfig
from cluster.log.checkpoints import TopicPartition
from cluster.log.errors import LogError
from cluster.log.manager import LogManager
from cluster.seams.clock import Clock

logger = logging.getLogger(__name__)

#: Runs a function that blocks, off the loop if there is a beside.
Blocking = Callable[[Callable[[], None]], Awaitable[None]]

#: How often rolled segments and ``flush.ms`` are examined.
FLUSH_INTERVAL_MS = 1000


async def in_thread(function: Callable[[], None]) -> None:
    """In a thread of the loop's pool."""
    await asyncio.get_running_loop().run_in_executor(None, function)


async def in_place(function: Callable[[], None]) -> None:
    """Here and now: for simulation, where nothing blocks."""
    function()


async def unbroken(blocking: Blocking, work: Callable[[], None]) -> None:
    """Run ``work`` by ``blocking``; a cancellation meanwhile is raised only when it is done, for a thread continues."""
    running = asyncio.ensure_future(blocking(work))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        if not running.cancelled() and (error := running.exception()) is not None:
            logger.warning("stopped while it failed: %s", error)
        raise


class Checkpoints:
    """The timers of one broker's files."""

    def __init__(
        self,
        logs: LogManager,
        high_watermarks: Callable[[], Mapping[TopicPartition, int]],
        config: BrokerConfig,
        clock: Clock,
        storage_failed: Callable[[LogError], None],
        blocking: Blocking = in_thread,
    ) -> None:
        self.lock = asyncio.Lock()
        self._logs = logs
        self._high_watermarks = high_watermarks
        self._config = config
        self._clock = clock
        self._blocking = blocking
        self._timers = Timers(storage_failed)

    def __repr__(self) -> str:
        return f"<Checkpoints of {self._logs!r}>"

    def start(self) -> None:
        config = self._config
        self._timers.start(
            [
                (config["replica.high.watermark.checkpoint.interval.ms"], self.write_high_watermarks),
                (config["log.flush.offset.checkpoint.interval.ms"], self._write_recovery_points),
                (config["log.flush.start.offset.checkpoint.interval.ms"], self._write_log_starts),
                (config["producer.id.expiration.check.interval.ms"], self._expire_producers),
                (FLUSH_INTERVAL_MS, self._flush),
            ]
        )

    async def stop(self) -> None:
        await self._timers.stop()

    async def write_high_watermarks(self) -> None:
        """Raises ``StorageFailed``."""
        high_watermarks = self._high_watermarks()
        await self._locked(lambda: self._logs.checkpoint_high_watermarks(high_watermarks))

    async def _write_recovery_points(self) -> None:
        await self._locked(self._logs.checkpoint_recovery_points)

    async def _write_log_starts(self) -> None:
        await self._locked(self._logs.checkpoint_log_starts)

    async def _locked(self, work: Callable[[], None]) -> None:
        async with self.lock:
            await unbroken(self._blocking, work)

    async def _flush(self) -> None:
        self._logs.flush_due()
        for log, pending in self._logs.rolled():
            error: OSError | None = None
            try:
                await self._locked(pending.run)
            except OSError as failure:
                error = failure
            log.finish_flush(pending, error)

    async def _expire_producers(self) -> None:
        wall_ms, monotonic_ms = self._clock.wall_ms(), self._clock.monotonic_ms()
        for log in self._logs:
            log.producers.expire(wall_ms, monotonic_ms, self._config["producer.id.expiration.ms"])
