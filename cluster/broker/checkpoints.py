"""Checkpoints: what a broker writes down every few seconds, without holding up its event loop.

Owns when high watermarks, recovery points, log starts and snapshots of producers are written, when logs are synced, and
when idle producers are forgotten. Does not own the files (``cluster.log.manager``). Syncing blocks: it runs off the
loop (``blocking``), under a lock that any code that adds or deletes logs takes too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from cluster.broker.pauses import Pauses, Shares
from cluster.broker.timers import Timers
from cluster.config.broker import BrokerConfig
from cluster.log.errors import LogError, StorageFailed
from cluster.log.manager import LogManager
from cluster.log.partition_log import PartitionLog
from cluster.log.waiting_snapshots import WAITING
from cluster.seams.clock import Clock
from cluster.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

#: Runs a function that blocks, off the loop if there is a beside.
Blocking = Callable[[Callable[[], None]], Awaitable[None]]

#: How often rolled segments and ``flush.ms`` are examined.
FLUSH_INTERVAL_MS = 1000
#: How often snapshots of producers are written that rolls have put off.
SNAPSHOT_INTERVAL_MS = 200


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
                (config["producer.id.expiration.check.interval.ms"], self.expire_producers),
                (FLUSH_INTERVAL_MS, self.flush),
                (SNAPSHOT_INTERVAL_MS, self.write_snapshots),
            ]
        )
        self._logs.writes_snapshots = True

    async def stop(self) -> None:
        self._logs.writes_snapshots = False
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

    async def flush(self) -> None:
        """Sync the logs whose ``flush.ms`` has passed, and what rolls have left. A log that fails does not keep the
        others from it; raises ``StorageFailed`` with the first failure."""
        failure: StorageFailed | None = None
        async for log in self._each():
            log.mark_producers()
            for _ in range(WAITING):  # a start that finds more of the log synced looks for the newer snapshot
                await self._write_snapshot(log)
            error: OSError | None = None
            async with self.lock:  # no log is deleted between its plan and the run
                pending = None if log.is_failed else log.begin_flush_due(self._clock.monotonic_ms())
                if pending is None:
                    continue
                try:
                    await unbroken(self._blocking, pending.run)
                except OSError as caught:
                    error = caught
            try:
                log.finish_flush(pending, error)
            except StorageFailed as caught:
                failure = failure or caught
        if failure is not None:
            raise failure

    async def write_snapshots(self) -> None:
        """Write the snapshots of producers that rolls have put off, in turns where a log has many. Raises
        ``StorageFailed``."""
        while logs := self._logs.with_snapshots():
            for log in logs:
                await self._write_snapshot(log)

    async def _write_snapshot(self, log: PartitionLog) -> None:
        if not log.snapshots_wait:
            return
        async with self.lock:  # no log is deleted, and none is made in its place, before the files have their names
            pending = None if log.is_failed else log.begin_snapshot()
            if pending is None:
                return
            error: OSError | None = None
            try:
                await unbroken(self._blocking, pending.run)
            except OSError as caught:
                error = caught
            log.finish_snapshot(pending, error)

    async def expire_producers(self) -> None:
        """Forget the producers that are idle for ``producer.id.expiration.ms``."""
        async for log in self._each():
            wall_ms, monotonic_ms = self._clock.wall_ms(), self._clock.monotonic_ms()
            log.producers.expire(wall_ms, monotonic_ms, self._config["producer.id.expiration.ms"])

    async def _each(self) -> AsyncIterator[PartitionLog]:
        """The logs there are now, with turns of the loop between them: there may be thousands."""
        pause = Pauses(Shares(self._clock.monotonic_ns))
        for log in list(self._logs):
            await pause()
            yield log
