"""PartitionLog: the log of one replica of one partition, as the broker sees it.

Owns the log start, and that files, epochs and producers go back together when the log is cut. Its bases append
(``appending.py``, ``replicated_appends.py``, ``transactional_log.py``); ``local_log.py`` keeps the files. Does not own
high watermarks, who leads, retention, or answers. One thread only, but a flush may run elsewhere (``flush.py``).
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from uuid import UUID

from cluster.log.checkpoints import PARTITION_METADATA_FILE, partition_metadata_text
from cluster.log.clean_state import LogState
from cluster.log.cleaner import Cleaning, cleanable_of, plan_cleaning
from cluster.log.compaction import Cleanable
from cluster.log.config import INT64_MAX, LogConfig
from cluster.log.data_directory import retire_directory
from cluster.log.errors import OffsetOutsideLog, StorageFailed
from cluster.log.flush import PendingFlush
from cluster.log.local_log import LocalLog, ReadResult
from cluster.log.opening import OpenedLog, OpenLog, open_log
from cluster.log.owner import LogOwner
from cluster.log.removal import Doomed
from cluster.log.retention import ExpiredSegment, expired_segments, segment_facts
from cluster.log.sequence import CheckSequence, check_sequence
from cluster.log.timestamps import FoundTime, Look, TimestampSearch
from cluster.log.transactional_log import TransactionalLog
from cluster.log.waiting_snapshots import PendingSnapshot
from cluster.protocol.errors import CorruptBatch
from cluster.seams.clock import Clock
from cluster.seams.storage import Storage

logger = logging.getLogger(__name__)


class PartitionLog(TransactionalLog):
    """See the module's text. Made by ``open``; a sequence check of another make may be given to it."""

    def __init__(
        self,
        directory: str,
        topic: str,
        partition: int,
        config: LogConfig,
        storage: Storage,
        clock: Clock,
        opened: OpenedLog,
        recovery_point: int,
        check_sequence: CheckSequence,
        doomed: Doomed,
        cleaned_to: int,
        holes_allowed: bool,
        names_synced: bool,
        owner: LogOwner,
    ) -> None:
        local = LocalLog(
            directory,
            opened.segments,
            config,
            storage,
            clock,
            recovery_point,
            doomed,
            cleaned_to,
            holes_allowed,
            names_synced,
        )
        super().__init__(
            topic,
            partition,
            local,
            opened.log_start_offset,
            opened.epochs,
            opened.epoch_file,
            opened.producers,
            opened.snapshots,
            clock,
            check_sequence,
            owner,
        )
        self.directory = directory
        self.topic_id: UUID | None = opened.topic_id
        #: How much of it was not known to be synced when it was opened.
        self.verified_bytes = opened.verified_bytes
        #: Whether a compaction could not be carried out; none is tried again while the broker runs.
        self.is_uncleanable = False
        self._held_up_at = 0  # The end of a compaction that a transaction held up: only a later end may do more.
        self._doomed = doomed
        self._storage = storage

    @classmethod
    def open(
        cls,
        directory: str,
        topic: str,
        partition: int,
        config: LogConfig,
        storage: Storage,
        clock: Clock,
        *,
        clean: bool,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        check_sequence: CheckSequence = check_sequence,
        doomed: Doomed | None = None,
        cleaned_to: int | None = None,
        state: LogState | None = None,
        committed_to: int | None = None,
        owner: LogOwner | None = None,
        opening: OpenLog = open_log,
    ) -> PartitionLog:
        """Open the log in ``directory``, or begin one there at ``log_start_offset``.

        ``clean`` says that the last stop was clean; else everything from ``recovery_point`` on is verified.
        ``cleaned_to`` says that it was compacted up to there; None: never. ``state`` is what ``close`` returned, if
        nothing has happened since. ``committed_to`` is the last known high watermark, if the recovery point was lost.
        Raises ``StorageFailed`` if the disk fails or what was stored safely is damaged.
        """
        holes_allowed = cleaned_to is not None or config.is_compacted
        # Only a clean stop knows about itself that all names were synced.
        names_synced = clean and storage.exists(directory)
        opened = opening(
            directory,
            config,
            storage,
            clock.wall_ms(),
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            holes_allowed=holes_allowed,
            state=state,
            committed_to=committed_to,
        )
        synced = INT64_MAX if clean else recovery_point
        return cls(
            directory,
            topic,
            partition,
            config,
            storage,
            clock,
            opened,
            synced,
            check_sequence,
            Doomed(clock) if doomed is None else doomed,
            cleaned_to or 0,
            holes_allowed,
            names_synced,
            LogOwner() if owner is None else owner,
        )

    def __repr__(self) -> str:
        failed = f", failed: {self._local.failure}" if self._local.failure else ""
        return (
            f"PartitionLog({self.topic}-{self.partition}, [{self.log_start_offset}, {self.log_end_offset}), "
            f"{len(self._local.segments)} segments, {self.epochs}{failed})"
        )

    @property
    def config(self) -> LogConfig:
        return self._local.config

    @property
    def is_failed(self) -> bool:
        """Whether the disk failed under this log: it answers KAFKA_STORAGE_ERROR until it is opened again."""
        return self._local.failure is not None

    @property
    def size_bytes(self) -> int:
        return self._local.segments.size_bytes

    @property
    def segment_base_offsets(self) -> list[int]:
        return self._local.segments.base_offsets

    def update_config(self, config: LogConfig) -> None:
        """Take other settings; those of indexes hold from the next segment on. Raises ``StorageFailed``: nothing has
        changed if it cannot be noted that the log may have holes from now on.
        """
        if config.is_compacted and not self.config.is_compacted:
            self._owner.may_have_holes(self)
        self._local.had_holes = self._local.holes_allowed
        self._local.config = config

    # -- reading ------------------------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, upper_bound_offset: int, at_least_one: bool = True) -> ReadResult:
        """Whole batches from the one that holds ``offset``, of one segment, all below ``upper_bound_offset``.

        They are at most ``max_bytes``, but ``at_least_one`` lets the first be larger. Raises ``OffsetOutsideLog``, or
        ``StorageFailed`` if the file cannot be read.
        """
        self._local.check()
        try:
            return self._local.read(offset, max_bytes, upper_bound_offset, self.log_start_offset, at_least_one)
        except (OSError, CorruptBatch) as error:
            raise StorageFailed(f"reading {self.directory} at offset {offset}: {error}") from error

    @property
    def max_timestamp(self) -> int:
        """The newest timestamp in the log in milliseconds, -1 if there is none."""
        return max(segment.max_timestamp for segment in self._local.segments)

    def search_timestamp(self, timestamp: int) -> Generator[Look | None, FoundTime, FoundTime]:
        """Look for (timestamp, offset) of the first record as new as ``timestamp`` or newer; None if there is none.

        Others may have a turn whenever it yields. A look into a batch with much in it is yielded: another thread may
        take it, and what it found is sent back. Raises ``StorageFailed``.
        """
        search = TimestampSearch(self._local, timestamp, self.log_start_offset)
        while not search.is_over:
            self._local.check()
            try:
                batch = search.step()
                if batch is not None:
                    found = (yield batch.look) if batch.is_long else batch.look()
                    if found is not None:
                        return found
            except (OSError, CorruptBatch) as error:
                raise StorageFailed(f"reading {self.directory} for timestamp {timestamp}: {error}") from error
            yield None
        return None

    # -- cutting ------------------------------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> int:
        """Remove everything at or above ``offset``, also a batch that begins before it; returns the records removed.

        Epochs and producers go back with the log. Below the log start the log is empty afterwards and begins where it
        ends, as in Kafka's ``UnifiedLog.truncateTo``. Raises ``StorageFailed``.
        """
        local = self._local
        local.check()
        before = local.log_end_offset
        first_offset = local.segments.first.base_offset
        if offset < first_offset:
            self.truncate_fully_and_start_at(offset)
            return before - first_offset
        if offset < before:
            recovery_point, cleaned_to = local.recovery_point, local.cleaned_to
            if offset < self.log_start_offset:
                self._lower_log_start(self._end_after_cut(offset))
            self._drop_snapshots_above(offset)
            local.truncate_to(offset)
            if local.holes_allowed:  # it may end in a hole, and what follows begins there: see ``recovery.py``
                local.flush()
            self.producers.drop_marks_above(local.log_end_offset)
            if self.producers.holds_above(local.log_end_offset):
                self._rebuild_producers()
            self.log_start_offset = min(self.log_start_offset, local.log_end_offset)
            self._announce_cut(recovery_point, cleaned_to)
            offset = local.log_end_offset
        # Also when nothing is cut: an epoch that begins at the end may conflict with the leader's.
        self.epochs.truncate_from_end(offset)
        return before - local.log_end_offset

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything and begin at ``offset``, as a follower does whose leader has deleted what it needs."""
        local = self._local
        local.check()
        recovery_point, cleaned_to = local.recovery_point, local.cleaned_to
        start_before = self.log_start_offset
        if offset < start_before:
            self._lower_log_start(offset)
        self._drop_snapshots_above(-1)
        local.start_over(offset)
        self.producers.clear()
        self.epochs.clear()
        self.log_start_offset = offset
        self._announce_cut(recovery_point, cleaned_to)
        self._announce_log_start(start_before, "the leader's log begins later")

    def advance_log_start_offset(self, offset: int, reason: str = "asked for") -> None:
        """Let the log begin at ``offset``, which is at most its end; whole segments below it are deleted.

        ``reason`` is for the journal. Raises ``OffsetOutsideLog`` or ``StorageFailed``.
        """
        if offset <= self.log_start_offset:
            return
        if offset > self.log_end_offset:
            raise OffsetOutsideLog(offset, self.log_start_offset, self.log_end_offset)
        before, self.log_start_offset = self.log_start_offset, offset
        self._announce_log_start(before, reason)
        self.epochs.truncate_from_start(offset)
        self.shrink()

    def retain(self, high_watermark: int, now_ms: int) -> list[ExpiredSegment]:
        """Delete the segments whose time has come, all below ``high_watermark``; ``now_ms`` is wall time.

        Raises ``StorageFailed``.
        """
        local = self._local
        local.check()
        facts = segment_facts(list(local.segments), local.log_end_offset)
        gone = expired_segments(
            facts,
            self.config,
            log_start_offset=self.log_start_offset,
            high_watermark=high_watermark,
            now_ms=now_ms,
        )
        if not gone:
            return gone
        if len(gone) == len(facts):
            self.roll("all before has expired")
        end_offset = gone[-1].segment.end_offset
        if end_offset > self.log_start_offset:
            self.advance_log_start_offset(end_offset, gone[-1].reason)
        else:  # they lay below the log start already
            self.shrink()
        return gone

    def shrink(self) -> None:
        """Delete segments below the log start; ``Doomed`` knows if some are left. Raises ``StorageFailed``.

        Those before a segment whose snapshot waits stay until it is written: the log may have no other trace of the
        producers in them.
        """
        segments, offset = self._local.segments, self.log_start_offset
        if segments.any_below(offset):
            offset = self._snapshots.waiting.may_begin(segments.base_offsets, offset)
            self._epoch_file.outlast(offset)
        if self._local.drop_below(offset):
            try:
                self._snapshots.drop_below(segments.first.base_offset)
            except OSError as error:
                raise StorageFailed(f"removing snapshots of {self.directory}: {error}") from error
        if segments.any_below(offset):
            self._doomed.postpone(self)

    def _drop_snapshots_above(self, offset: int) -> None:
        """Before the log is cut, so that a crash meanwhile leaves none that speaks of other records."""
        try:
            self._snapshots.drop_above(offset)
        except OSError as error:
            raise StorageFailed(f"removing snapshots of {self.directory} above {offset}: {error}") from error

    # -- compacting ---------------------------------------------------------------------------------------------------

    @property
    def holes_allowed(self) -> bool:
        """Whether offsets may be missing, because compaction removed their records."""
        return self._local.holes_allowed

    def cleanable(self, high_watermark: int, now_ms: int) -> Cleanable | None:
        """What can be compacted of what is committed and decided, None if nothing; ``now_ms`` is wall time."""
        what = cleanable_of(
            self._local,
            log_start_offset=self.log_start_offset,
            stable_offset=self.last_stable_offset(high_watermark),
            now_ms=now_ms,
        )
        return None if what is not None and what.end_offset <= self._held_up_at else what

    def begin_cleaning(self, what: Cleanable, max_keys: int, now_ms: int) -> Cleaning:
        """A compaction whose ``run`` may block another thread; ``finish_cleaning`` must follow on this one."""
        self._local.check()
        return plan_cleaning(self._local, self.producers, self._storage, what, max_keys=max_keys, now_ms=now_ms)

    def finish_cleaning(self, cleaning: Cleaning) -> bool:
        """Put the new segments in place; False if the log was cut meanwhile, so that they are worth nothing.

        Raises ``StorageFailed``.
        """
        local = self._local
        local.check()
        if local.cuts != cleaning.cuts:
            return False
        while cleaning.replacements:
            local.replace_segments(*cleaning.replacements.pop(0))
        local.cleaned_to = cleaning.cleaned_to
        self._held_up_at = cleaning.what.end_offset if cleaning.is_held_up else 0
        return True

    def _announce_log_start(self, before: int, reason: str) -> None:
        if self.log_start_offset > before:
            self._owner.log_start_moved(self, before, reason)

    def _announce_cut(self, recovery_point: int, cleaned_to: int) -> None:
        """What a checkpoint says about the log as it was before would be wrong of what is appended next."""
        if self._local.recovery_point < recovery_point or self._local.holes_allowed:
            self._owner.recovery_point_moved(self)
        if self._local.cleaned_to < cleaned_to:
            self._owner.cleaned_lowered(self)

    def _lower_log_start(self, offset: int) -> None:
        """Before the files are cut: a start that finds a log end below its checkpointed start wipes the log and begins
        there (Kafka's ``LogLoader`` too), and so would lack for good what the leader has in between.
        """
        self.log_start_offset = min(self.log_start_offset, offset)
        self._owner.log_start_lowered(self)

    def _end_after_cut(self, offset: int) -> int:
        try:
            return self._local.end_after_cut(offset)
        except (OSError, CorruptBatch) as error:
            raise self._local.fail(f"looking for {offset} to truncate there: {error}") from error

    # -- flushing and the end -----------------------------------------------------------------------------------------

    def flush(self, up_to: int | None = None) -> None:
        """Sync everything below ``up_to`` (default: all) and move the recovery point. Raises ``StorageFailed``."""
        self._local.flush(up_to)

    def begin_flush(self, up_to: int | None = None) -> PendingFlush | None:
        """A flush whose ``run`` may block another thread instead; ``finish_flush`` must follow on this one."""
        return self._local.begin_flush(up_to)

    def begin_flush_due(self, monotonic_ms: int) -> PendingFlush | None:
        """The same of all if ``flush.ms`` has passed, else of what rolls have left to be synced, if anything."""
        local = self._local
        return local.begin_flush(None if local.flush_due(monotonic_ms) else local.segments.active.base_offset)

    def finish_flush(self, pending: PendingFlush, error: OSError | None = None) -> None:
        """Move the recovery point, or raise ``StorageFailed`` for an error, after which the log is failed."""
        self._local.finish_flush(pending, error)

    @property
    def snapshots_wait(self) -> bool:
        """Whether rolls have put off snapshots of the producers."""
        return bool(self._snapshots.waiting)

    def begin_snapshot(self) -> PendingSnapshot | None:
        """The oldest of these. Its ``run`` may block another thread; ``finish_snapshot`` must follow on this one."""
        return self._snapshots.begin_write()

    def finish_snapshot(self, pending: PendingSnapshot, error: OSError | None = None) -> None:
        """Keep what was written if it still fits, and delete what stayed for its sake. Raises ``StorageFailed``."""
        try:
            self._snapshots.finish_write(pending, error)
            self._drop_superseded()
        except OSError as caught:  # it can be rebuilt from the log, as it is at every start
            logger.warning("%s: cannot write the snapshot at %d: %s", self.directory, pending.noted.offset, caught)
        if self._local.segments.any_below(self.log_start_offset):
            self.shrink()

    def set_topic_id(self, topic_id: UUID) -> None:
        """Write ``partition.metadata``, synced: a torn one would keep the replica offline. Raises ``StorageFailed``."""
        path = f"{self.directory}/{PARTITION_METADATA_FILE}"
        try:
            self._storage.write_atomic(path, partition_metadata_text(topic_id).encode())
            self._local.sync_names()
        except OSError as error:
            raise StorageFailed(f"writing {path}: {error}") from error
        self.topic_id = topic_id

    def close(self, clean: bool) -> LogState | None:
        """Close the files; ``clean``: sync everything first, with indexes and a snapshot at the end.

        Returns what the log is then, for the next start. Raises ``StorageFailed``; the files are closed anyway.
        """
        local = self._local
        state: LogState | None = None
        try:
            if clean:
                local.flush()
                local.sync_names()
                local.segments.active.seal()
                self._snapshots.write_waiting()
                self._snapshots.write(local.log_end_offset, self.producers)
                records = tuple(segment.record() for segment in local.segments)
                state = LogState(records, self.epochs.entries, tuple(self.producers))
        except OSError as error:
            raise StorageFailed(f"closing {self.directory}: {error}") from error
        finally:
            local.segments.close()
        return state

    def delete(self) -> None:
        """Rename the directory, and remove it when ``file.delete.delay.ms`` has passed; its files are closed before
        (``removal.py``). Raises ``StorageFailed``."""
        doomed = retire_directory(self.directory, self._storage, self._clock.monotonic_ns())
        files = [file for segment in self._local.segments for file in segment.files]
        self._doomed.add(self.config.file_delete_delay_ms, files=files, directory=doomed)
        # Some files are still open: anyone who kept the log must not write to them and be told that it worked.
        self._local.failure = "it was deleted"
