"""What the checkpoints of a data directory say about the logs in it.

Owns which rows each file gets: of logs that are open, of those that are offline, of those that are to be made or to be
deleted. Does not own the files (``offset_files``), nor the logs (``manager``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from cluster.log.checkpoints import CLEANER_FILE, HIGH_WATERMARK_FILE, LOG_START_FILE, RECOVERY_POINT_FILE
from cluster.log.config import LogConfig
from cluster.log.offline import OfflineLog
from cluster.log.offset_files import OffsetFiles
from cluster.log.owner import LogOwner, OwnedLog
from cluster.log.partition_log import PartitionLog
from cluster.log.producer_quota import ProducerQuota
from cluster.topic_partition import TopicPartition

#: (log, start before, why), when the start of a log has moved.
LogStartMoved = Callable[[OwnedLog, int, str], None]


class LogCheckpoints(LogOwner):
    """Of one broker."""

    def __init__(self, offsets: OffsetFiles, max_producers: int, on_log_start_moved: LogStartMoved) -> None:
        self._offsets = offsets
        self._logs: dict[TopicPartition, PartitionLog] = {}
        super().__init__(ProducerQuota(max_producers, self._logs.values))
        self._offline: dict[TopicPartition, OfflineLog] = {}
        #: To be made next, with nothing of former logs left.
        self._prepared: set[TopicPartition] = set()
        self._on_log_start_moved = on_log_start_moved
        #: Logs whose snapshots may wait.
        self._put_off: dict[TopicPartition, None] = {}

    # what the logs ask and tell

    def checkpointed_recovery_point(self, topic: str, partition: int) -> int:
        return self._offsets.get(RECOVERY_POINT_FILE, (topic, partition))

    def recovery_point_moved(self, log: OwnedLog) -> None:
        with self._offsets.lock:
            if self._offsets.get(RECOVERY_POINT_FILE, (log.topic, log.partition)) != log.recovery_point:
                self.checkpoint_recovery_points()

    def may_have_holes(self, log: OwnedLog) -> None:
        self.note_holes([(log.topic, log.partition)])

    def cleaned_lowered(self, log: OwnedLog) -> None:
        self._lower(CLEANER_FILE, log, log.cleaned_to)

    def log_start_lowered(self, log: OwnedLog) -> None:
        self._lower(LOG_START_FILE, log, log.log_start_offset)

    def _lower(self, name: str, log: OwnedLog, offset: int) -> None:
        with self._offsets.lock:
            if self._offsets.get(name, (log.topic, log.partition)) > offset:
                self._offsets.update(name, {(log.topic, log.partition): offset})

    def log_start_moved(self, log: OwnedLog, before: int, reason: str) -> None:
        self._on_log_start_moved(log, before, reason)

    def snapshot_put_off(self, topic: str, partition: int) -> None:
        self._put_off[topic, partition] = None

    # what the broker has written

    def with_snapshots(self) -> list[PartitionLog]:
        """The logs whose snapshots wait to be written."""
        known = (self._logs[key] for key in self._put_off if key in self._logs)
        logs = [log for log in known if log.snapshots_wait and not log.is_failed]
        self._put_off = {(log.topic, log.partition): None for log in logs}
        return logs

    def high_watermark(self, topic: str, partition: int) -> int:
        """As last checkpointed, 0 if never; the log may end below it."""
        return self._offsets.get(HIGH_WATERMARK_FILE, (topic, partition))

    def checkpoint_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write ``replication-offset-checkpoint``; logs that are not in the mapping keep their former lines."""
        self._offsets.update(HIGH_WATERMARK_FILE, high_watermarks)

    def checkpoint_recovery_points(self) -> None:
        """Write ``recovery-point-offset-checkpoint``. Raises ``StorageFailed``."""
        with self._offsets.lock:
            points = {key: log.recovery_point for key, log in self._logs.copy().items()}
            self._offsets.write(RECOVERY_POINT_FILE, {**self._lines_of_offline(RECOVERY_POINT_FILE), **points})

    def lower_recovery_points(self, opened: Iterable[TopicPartition]) -> None:
        """Logs were opened, which may end below what was synced. Raises ``StorageFailed``."""
        if any(self._offsets.get(RECOVERY_POINT_FILE, key) > self._logs[key].recovery_point for key in opened):
            self.checkpoint_recovery_points()

    def checkpoint_log_starts(self) -> None:
        """Write ``log-start-offset-checkpoint``; as in Kafka only starts that no segment's name tells."""
        with self._offsets.lock:
            starts = {
                key: log.log_start_offset
                for key, log in self._logs.copy().items()
                if log.log_start_offset > log.segment_base_offsets[0]
            }
            self._offsets.write(LOG_START_FILE, {**self._lines_of_offline(LOG_START_FILE), **starts})

    def checkpoint_cleaned(self) -> None:
        """Write ``cleaner-offset-checkpoint``: how far each log was compacted. Raises ``StorageFailed``."""
        with self._offsets.lock:
            logs = self._logs.copy()
            rows = {
                key: logs[key].cleaned_to if key in logs else to for key, to in self._offsets.rows(CLEANER_FILE).items()
            }
            self._offsets.write(CLEANER_FILE, rows)

    def _lines_of_offline(self, name: str) -> dict[TopicPartition, int]:
        """Kept as they are: without its recovery point a damaged log would be cut at the next start."""
        return {key: offset for key, offset in self._offsets.rows(name).items() if key in self._offline}

    def prepare(self, configs: Mapping[TopicPartition, LogConfig]) -> None:
        """Logs are to be made: what ``get_or_create`` would write for each is written for all of them together, and
        those that lacked a file descriptor are opened. May block another thread; no other of them may be made
        meanwhile. Raises ``StorageFailed``."""
        new = configs.keys() - self._logs.keys() - self._offline.keys()
        self._offsets.forget(new)
        compacted = {key: 0 for key in configs if key in new and configs[key].is_compacted}
        if compacted:
            self._offsets.update(CLEANER_FILE, compacted)
        self._prepared = new
        for key in configs.keys() & self._offline.keys():
            self._offline[key].prepare(configs[key])

    def note_holes(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """From now on these logs may have holes, and the next start must know that before it knows the topics'
        settings. May block another thread. Raises ``StorageFailed``."""
        logs = self._logs.copy()
        unknown = (key for key in topic_partitions if key in logs and not self._offsets.has(CLEANER_FILE, key))
        rows = {key: logs[key].cleaned_to for key in unknown}
        if rows:
            self._offsets.update(CLEANER_FILE, rows)

    def forget(self, topic_partitions: Collection[TopicPartition]) -> None:
        """Delete the checkpoint lines of logs that are to be deleted. May block another thread. Raises
        ``StorageFailed``."""
        self._offsets.forget(topic_partitions)
