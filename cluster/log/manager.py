"""LogManager: all logs in one broker's data directory, and the files beside them.

Owns which logs exist, opening them at start, the recovery-point, log-start and high-watermark checkpoints, the room for
producers in all of them, and the lock. Does not own what a clean stop leaves (``clean_stop.py``), when checkpoints are
written (the broker's timers), or the high watermarks: it is handed them.

Checkpoints may be written from another thread than the one that appends. What is written is looked up under the lock
of ``OffsetFiles``: a checkpoint must not overtake a later truncation that lowers a recovery point.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from uuid import UUID

from cluster.log.checkpoints import (
    CLEANER_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
)
from cluster.log.clean_state import LogState
from cluster.log.clean_stop import CleanStop
from cluster.log.config import LogConfig
from cluster.log.data_directory import (
    claim_directory,
    is_going_away,
    lock_directory,
    make_directory,
    parse_replica_directory_name,
    replica_directory_name,
    retire_directory,
)
from cluster.log.errors import LogError, OutOfFiles, StorageFailed
from cluster.log.log_checkpoints import LogCheckpoints, LogStartMoved
from cluster.log.offline import OfflineLog
from cluster.log.offset_files import OffsetFiles
from cluster.log.opening import OpenLog, open_log
from cluster.log.partition_log import PartitionLog
from cluster.log.producer_quota import MAX_PRODUCERS
from cluster.log.removal import Doomed, Removal, Shrinking
from cluster.log.sequence import CheckSequence, check_sequence
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import Clock
from cluster.seams.storage import Lock, Storage
from cluster.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

#: The line of a log whose recovery point was lost, until it can be opened. Without one it would be taken for a new log,
#: of which nothing is synced. Kafka, too, verifies all of a log with such a line.
UNKNOWN = -1


class LogManager(LogCheckpoints):
    """The logs of one broker. ``load`` first."""

    def __init__(
        self,
        data_dir: str,
        storage: Storage,
        clock: Clock,
        config: LogConfig,
        check_sequence: CheckSequence = check_sequence,
        max_producers: int = MAX_PRODUCERS,
        on_log_start_moved: LogStartMoved = lambda _log, _before, _reason: None,
        opening: OpenLog = open_log,
    ) -> None:
        super().__init__(OffsetFiles(data_dir, storage), max_producers, on_log_start_moved)
        self.data_dir = data_dir
        self._storage = storage
        self._clock = clock
        self._config = config
        self._check_sequence = check_sequence
        self._opening = opening
        self._doomed = Doomed(clock)
        self._clean_stop = CleanStop(data_dir, storage)
        self._lock: Lock | None = None

    def __repr__(self) -> str:
        return f"LogManager({self.data_dir}, {len(self._logs)} logs, {len(self._offline)} offline)"

    def __len__(self) -> int:
        return len(self._logs)

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(self._logs.values())

    def lock(self) -> None:
        """Take the data directory for this broker alone, until ``close``. Raises ``StorageFailed``."""
        self._lock = lock_directory(self.data_dir, self._storage)

    def claim(self, broker_id: int, cluster_id: str) -> None:
        """Write ``meta.properties``, or check that it names this broker and cluster. Raises ``LogError``."""
        claim_directory(self.data_dir, self._storage, broker_id, cluster_id)

    def load(self, configs: Mapping[str, LogConfig] | None = None) -> bool:
        """Open every log that is there; ``configs`` by topic, the default for others. Returns whether the last stop
        was clean.

        A log that cannot be opened is offline, and the others are not concerned: ``get_or_create`` raises what was
        wrong, or opens it after all if it lacked a file descriptor. Raises ``StorageFailed`` if the directory itself
        cannot be used.
        """
        try:
            make_directory(self.data_dir, self._storage)
            states = self._clean_stop.take()
            clean = states is not None
            names = self._storage.listdir(self.data_dir)
            for name in names:
                if is_going_away(name):
                    self._doomed.add(0, directory=self._path(name))
        except OSError as error:
            raise StorageFailed(f"cannot use the data directory {self.data_dir}: {error}") from error
        missing = self._offsets.load()
        if CLEANER_FILE in missing:
            # Without it no one knows which logs were compacted: this time all may have holes.
            self._offsets.write(CLEANER_FILE, {})
        is_lost = RECOVERY_POINT_FILE in missing and not clean
        for name in names:
            topic_partition = parse_replica_directory_name(name)
            if topic_partition is None or topic_partition in self._logs:
                continue
            config = (configs or {}).get(topic_partition[0], self._config)
            cleaned_to = self._offsets.rows(CLEANER_FILE).get(topic_partition)
            if CLEANER_FILE in missing:
                cleaned_to = 0
            recovery_point = UNKNOWN if is_lost else self._offsets.get(RECOVERY_POINT_FILE, topic_partition)
            opening = partial(
                self._open,
                topic_partition,
                clean=clean,
                recovery_point=max(0, recovery_point),
                log_start_offset=self._offsets.get(LOG_START_FILE, topic_partition),
                cleaned_to=cleaned_to,
                state=None if states is None else states.get(name),
                committed_to=self.high_watermark(*topic_partition) if recovery_point == UNKNOWN else None,
            )
            try:
                self._logs[topic_partition] = opening(config)
            except LogError as error:
                logger.error("log %s-%d is offline: %s", *topic_partition, error)
                self._offline[topic_partition] = OfflineLog(opening, error)
                if RECOVERY_POINT_FILE in missing:
                    self._offsets.update(RECOVERY_POINT_FILE, {topic_partition: UNKNOWN})
        if RECOVERY_POINT_FILE in missing:  # from now on there is one, so that its loss is seen
            self.checkpoint_recovery_points()
        self.lower_recovery_points(self._logs)
        after = " after a clean stop" if clean else " after an unclean stop" if self._logs or self._offline else ""
        logger.info("%s: %d logs%s", self.data_dir, len(self._logs), after)
        return clean

    def _open(
        self,
        topic_partition: TopicPartition,
        config: LogConfig,
        *,
        clean: bool,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        cleaned_to: int | None = None,
        state: LogState | None = None,
        committed_to: int | None = None,
    ) -> PartitionLog:
        log = PartitionLog.open(
            self._path(replica_directory_name(*topic_partition)),
            *topic_partition,
            config,
            self._storage,
            self._clock,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            check_sequence=self._check_sequence,
            doomed=self._doomed,
            cleaned_to=cleaned_to,
            state=state,
            committed_to=committed_to,
            owner=self,
            opening=self._opening,
        )
        # It may end below what was compacted, after a power loss.
        self.cleaned_lowered(log)
        return log

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        return self._logs.get((topic, partition))

    def get_or_create(self, topic: str, partition: int, topic_id: UUID | None, config: LogConfig) -> PartitionLog:
        """The log of a replica, with ``config`` from now on.

        Raises ``LogError``: INCONSISTENT_TOPIC_ID if the log is that of a former topic of this name,
        ``LogOffline`` if it could not be opened at the start, ``OutOfFiles`` if it may be asked for again,
        ``StorageFailed`` if it cannot be made.
        """
        topic_partition = (topic, partition)
        if (offline := self._offline.get(topic_partition)) is not None:
            self._logs[topic_partition] = offline.take(config)
            del self._offline[topic_partition]
            self.lower_recovery_points([topic_partition])
        log = self._logs.get(topic_partition)
        if log is None:
            if topic_partition not in self._prepared:
                self._offsets.forget([topic_partition])
            log = self._logs[topic_partition] = self._make(topic_partition, config)
            self._prepared.discard(topic_partition)
        if topic_id is not None and log.topic_id != topic_id:
            if log.topic_id is not None:
                raise LogError(
                    ErrorCode.INCONSISTENT_TOPIC_ID,
                    f"the log of {topic}-{partition} here is of topic id {log.topic_id}, not {topic_id}",
                )
            log.set_topic_id(topic_id)
        log.update_config(config)
        if config.is_compacted:
            self.may_have_holes(log)
        return log

    def _make(self, topic_partition: TopicPartition, config: LogConfig) -> PartitionLog:
        directory = self._path(replica_directory_name(*topic_partition))
        is_new = not self._storage.exists(directory)
        try:
            return self._open(topic_partition, config, clean=True)
        except OutOfFiles:
            # The next start would take what is left for a log, and open it, although its topic may be gone by then.
            if is_new:
                with suppress(OSError):
                    self._storage.remove_tree(directory)
            raise

    def delete(self, topic: str, partition: int) -> None:
        """Delete a log and its checkpoint lines; its files go later (``removals``). Raises ``StorageFailed``."""
        topic_partition = (topic, partition)
        offline = self._offline.pop(topic_partition, None)
        self._offsets.forget([topic_partition])
        log = self._logs.pop(topic_partition, None) if offline is None else offline.opened
        if log is not None:
            log.delete()
        elif offline is not None:
            directory = self._path(replica_directory_name(topic, partition))
            doomed = retire_directory(directory, self._storage, self._clock.monotonic_ns())
            self._doomed.add(self._config.file_delete_delay_ms, directory=doomed)

    def removals(self) -> list[Removal]:
        """Deleted files whose delay has passed: ``run`` each, in another thread if need be."""
        return self._doomed.take_due()

    def shrinking(self) -> Shrinking | None:
        """A log with more segments to delete than one turn allows: let it ``shrink``, and ask again."""
        return self._doomed.next_postponed()

    def close(self, clean: bool) -> None:
        """Close all logs; ``clean``: sync them, write the checkpoints, and at the very end the marker.

        A log that fails to close does not keep the others from it, but there is no marker then. Raises
        ``StorageFailed`` with the first failure.
        """
        failure: StorageFailed | None = None
        states: dict[str, LogState] = {}
        opened = {key: each.opened for key, each in self._offline.items() if each.opened is not None}
        for topic_partition, log in {**self._logs, **opened}.items():
            try:
                if (state := log.close(clean)) is not None:
                    states[replica_directory_name(*topic_partition)] = state
            except StorageFailed as error:
                failure = failure or error
        if clean:
            try:
                self.checkpoint_recovery_points()
                self.checkpoint_log_starts()
                if failure is None and not self._offline:
                    self._clean_stop.write(states)
            except StorageFailed as error:
                failure = failure or error
            except OSError as error:
                failure = StorageFailed(f"writing the marker of a clean stop: {error}")
        self._logs.clear()
        self._doomed.close()
        if self._lock is not None:
            self._lock.release()
        if failure is not None:
            raise failure

    def _path(self, name: str) -> str:
        return f"{self.data_dir}/{name}"
