"""Housekeeping: old segments go, logs are compacted, deleted files are removed, free memory goes back to the system,
all without holding up the event loop.

Owns when that is examined (``log.retention.check.interval.ms``, ``log.cleaner.backoff.ms``), and the journal's line
for each log start that moves. Does not own which segments go (``cluster.log.retention``), what is compacted
(``cluster.log.compaction``), or how.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial

from cluster.broker.checkpoints import Blocking, in_thread, unbroken
from cluster.broker.journal import Journal
from cluster.broker.pauses import Pauses, Shares
from cluster.broker.timers import Timers
from cluster.config.broker import BrokerConfig
from cluster.log.cleaner import Cleaning, CleaningCancelled
from cluster.log.compaction import KEY_BYTES, Cleanable
from cluster.log.errors import LogError
from cluster.log.manager import LogManager
from cluster.log.owner import OwnedLog
from cluster.log.partition_log import PartitionLog
from cluster.log.removal import Removal
from cluster.protocol.errors import CorruptBatch
from cluster.seams.clock import Clock
from cluster.seams.out_of_memory import halt_if_out_of_memory
from cluster.seams.storage import Storage
from cluster.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

#: The time between two searches for deleted files that are due.
REMOVAL_INTERVAL_MS = 1000
#: How often free memory is given back.
MEMORY_INTERVAL_MS = 2000


def note_log_start(journal: Journal, log: OwnedLog, before: int, reason: str) -> None:
    """Whatever took records away: those who judge the log later must be able to tell that from a loss."""
    journal(
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
        blocking: Blocking = in_thread,
        give_back_memory: Callable[[], None] | None = None,
    ) -> None:
        self._logs = logs
        self._high_watermarks = high_watermarks
        self._config = config
        self._clock = clock
        self._storage = storage
        self._blocking = blocking
        self._give_back_memory = give_back_memory
        self._timers = Timers(storage_failed)
        self._cleaning: Cleaning | None = None

    def __repr__(self) -> str:
        return f"<Housekeeping of {self._logs!r}>"

    def start(self) -> None:
        self._timers.start(
            [
                (self._config["log.retention.check.interval.ms"], self.retain),
                (REMOVAL_INTERVAL_MS, self._remove),
                (self._config["log.cleaner.backoff.ms"] if self._config["log.cleaner.enable"] else 0, self.clean),
                (MEMORY_INTERVAL_MS if self._give_back_memory is not None else 0, self._give_back),
            ]
        )

    async def stop(self) -> None:
        if self._cleaning is not None:
            self._cleaning.cancelled = True
        await self._timers.stop()

    async def retain(self) -> None:
        """Delete what has expired in every log that has a role. Raises ``StorageFailed``."""
        pause = Pauses(Shares(self._clock.monotonic_ns))
        for (topic, partition), high_watermark in self._high_watermarks().items():
            await pause()
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

    async def clean(self) -> None:
        """Compact log after log, the dirtiest first, until none is due. Raises ``StorageFailed``."""
        passed_over: set[TopicPartition] = set()
        while (key := await self._dirtiest(passed_over)) is not None:
            high_watermark = self._high_watermarks().get(key)
            log, what = self._what_is_due(key, high_watermark) if high_watermark is not None else (None, None)
            # Others may have had their turn since it was found.
            if log is None or what is None or not await self._clean(log, what):
                passed_over.add(key)

    async def _dirtiest(self, passed_over: set[TopicPartition]) -> TopicPartition | None:
        pause = Pauses(Shares(self._clock.monotonic_ns))
        dirtiest, most = None, -1.0
        for key, high_watermark in self._high_watermarks().items():
            await pause()
            if key in passed_over:
                continue
            _log, what = self._what_is_due(key, high_watermark)
            if what is not None and what.ratio > most:
                dirtiest, most = key, what.ratio
        return dirtiest

    def _what_is_due(
        self, key: TopicPartition, high_watermark: int
    ) -> tuple[PartitionLog, Cleanable] | tuple[None, None]:
        """The log and what of it is to be compacted now, if anything."""
        log = self._logs.get(*key)
        if log is None or log.is_failed or log.is_uncleanable or not log.config.is_compacted:
            return None, None
        what = log.cleanable(high_watermark, self._clock.wall_ms())
        return (log, what) if what is not None and what.is_due else (None, None)

    async def _clean(self, log: PartitionLog, what: Cleanable) -> bool:
        """One compaction, off the loop; False if it came to nothing."""
        max_keys = self._config["log.cleaner.dedupe.buffer.size"] // KEY_BYTES
        cleaning = self._cleaning = log.begin_cleaning(what, max_keys, self._clock.wall_ms())
        size_bytes = log.size_bytes
        done = False
        try:
            await unbroken(self._blocking, cleaning.run)
            # A start after a crash must know all that is compacted for synced, or it takes the holes for a loss.
            await unbroken(self._blocking, self._logs.checkpoint_recovery_points)
            done = not log.is_failed and log.finish_cleaning(cleaning)
        except (OSError, LogError, CleaningCancelled) as error:
            logger.warning("%s-%d is not compacted: %s", log.topic, log.partition, error)
            if log.is_failed:  # its files are between two states, which the next start puts right
                raise
        except Exception as error:
            halt_if_out_of_memory(error)
            # It would fail again and again, and take the time of the others (Kafka's markPartitionUncleanable).
            log.is_uncleanable = True
            logger.error(
                "%s-%d cannot be compacted, and is left as it is while the broker runs: %r",
                *(log.topic, log.partition, error),
                exc_info=not isinstance(error, CorruptBatch),
            )
        finally:
            self._cleaning = None
            await unbroken(self._blocking, cleaning.discard)
        if done:
            await unbroken(self._blocking, self._logs.checkpoint_cleaned)
            logger.info(
                "%s-%d: compacted up to %d, from %d to %d bytes",
                *(log.topic, log.partition, log.cleaned_to, size_bytes, log.size_bytes),
            )
        return done

    async def _remove(self) -> None:
        while (log := self._logs.shrinking()) is not None:
            if not log.is_failed:  # nor deleted
                log.shrink()
            await asyncio.sleep(0)
        removals = self._logs.removals()
        if removals:
            pause = Pauses(Shares(self._clock.monotonic_ns))
            for removal in removals:
                removal.close()  # here: in a thread its number could become another file's while it is sent from
                await pause()
            await unbroken(self._blocking, partial(_run_all, removals, self._storage))

    async def _give_back(self) -> None:
        if self._give_back_memory is not None:
            await unbroken(self._blocking, self._give_back_memory)


def _run_all(removals: list[Removal], storage: Storage) -> None:
    for removal in removals:
        removal.run(storage)
