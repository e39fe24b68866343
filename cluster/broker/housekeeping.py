"""Housekeeping: old segments go, and deleted files are removed, without holding up the event loop.

Owns when that is looked at (``log.retention.check.interval.ms``), and the journal's line for each log start that
moves. Does not own which segments go (``cluster.log.retention``), or how.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from cluster.broker.checkpoints import Blocking, in_thread, unbroken
from cluster.broker.replicas.values import TopicPartition
from cluster.broker.timers import Timers
from cluster.config.broker import BrokerConfig
from cluster.log.errors import LogError
from cluster.log.manager import LogManager
from cluster.log.partition_log import PartitionLog
from cluster.log.removal import Removal
from cluster.seams.clock import Clock
from cluster.seams.storage import Storage

logger = logging.getLogger(__name__)

#: Writes one line of the broker's journal: (event, details).
Journal = Callable[[str, dict[str, Any]], None]

#: How often it is looked whether deleted files are due.
REMOVAL_INTERVAL_MS = 1000


class Housekeeping:
    """The timers of one broker's old files. ``high_watermarks`` are those of the partitions that have a role here."""

    def __init__(
        self,
        logs: LogManager,
        high_watermarks: Callable[[], Mapping[TopicPartition, int]],
        config: BrokerConfig,
        clock: Clock,
        storage: Storage,
        storage_failed: Callable[[LogError], None],
        journal: Journal,
        blocking: Blocking = in_thread,
    ) -> None:
        self._logs = logs
        self._high_watermarks = high_watermarks
        self._config = config
        self._clock = clock
        self._storage = storage
        self._blocking = blocking
        self._journal = journal
        self._timers = Timers(storage_failed)

    def __repr__(self) -> str:
        return f"<Housekeeping of {self._logs!r}>"

    def start(self) -> None:
        self._logs.on_log_start_moved = self._log_start_moved
        self._timers.start(
            [
                (self._config["log.retention.check.interval.ms"], self.retain),
                (REMOVAL_INTERVAL_MS, self._remove),
            ]
        )

    async def stop(self) -> None:
        await self._timers.stop()

    def _log_start_moved(self, log: PartitionLog, before: int, reason: str) -> None:
        """Whatever took records away: those who judge the log later must be able to tell that from a loss."""
        self._journal(
            "log-start",
            {
                "topic": log.topic,
                "partition": log.partition,
                "before": before,
                "log_start_offset": log.log_start_offset,
                "log_end_offset": log.log_end_offset,
                "reason": reason,
            },
        )

    async def retain(self) -> None:
        """Delete what has expired in every log that has a role. Raises ``StorageFailed``."""
        for (topic, partition), high_watermark in self._high_watermarks().items():
            log = self._logs.get(topic, partition)
            if log is None or log.is_failed:
                continue
            gone = log.retain(high_watermark, self._clock.wall_ms())
            if gone:
                logger.info(
                    "%s-%d: %d segments deleted up to %d: %s",
                    *(topic, partition, len(gone), log.log_start_offset),
                    ", ".join(sorted({expired.reason for expired in gone})),
                )
                await asyncio.sleep(0)  # many logs may have much to delete

    async def _remove(self) -> None:
        removals = self._logs.removals()
        if removals:
            await unbroken(self._blocking, partial(_run_all, removals, self._storage))


def _run_all(removals: list[Removal], storage: Storage) -> None:
    for removal in removals:
        removal.run(storage)
