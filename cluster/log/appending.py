"""LogAppends: how a producer's batch gets into a log, and how a log begins a new segment.

Owns the order in which a batch is judged and then changes file, epochs and producers, and the roll before it. Does not
own the files (``local_log.py``), the checks themselves (``sequence.py``, ``timestamps.py``), nor what a follower and a
coordinator append (``replicated_appends.py``, ``transactional_log.py``).

The sequence is judged before the segment is rolled, unlike in Kafka (docs/produce-checks.md, rows 18 and 19): a batch
that is not appended leaves no trace. Nothing is noted of a batch before it is wholly in the file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from cluster.log.config import LogConfig
from cluster.log.epoch_file import EpochFile
from cluster.log.epochs import LeaderEpochCache
from cluster.log.errors import LogError
from cluster.log.local_log import LocalLog
from cluster.log.owner import LogOwner
from cluster.log.producer_hosts import UNKNOWN
from cluster.log.producers import ProducerStates
from cluster.log.roll import roll_reason
from cluster.log.sequence import ACCEPTED, CheckSequence, SequenceVerdict, VerdictKind
from cluster.log.snapshots import REMOVALS, SnapshotFiles
from cluster.log.timestamps import timestamp_problem
from cluster.log.transactions import check_in_transaction
from cluster.protocol.batch import (
    LOG_APPEND_TIME_BIT,
    BatchHeader,
    set_log_append_time,
    set_offset_and_epoch,
)
from cluster.protocol.errors import ErrorCode
from cluster.seams.clock import Clock

logger = logging.getLogger(__name__)


class AppendInfo(NamedTuple):
    """What became of an append.

    A batch answered as a duplicate has the offsets of the original; one below the window has offsets -1 and the code
    DUPLICATE_SEQUENCE_NUMBER. Under acks=all nothing may be answered until the high watermark is above
    ``must_commit_offset``.
    """

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    must_commit_offset: int
    duplicate: bool = False
    error_code: ErrorCode = ErrorCode.NONE


#: The same as calling the class, which costs a call more for every batch.
_new_info: Callable[[tuple[Any, ...]], AppendInfo] = partial(tuple.__new__, AppendInfo)


class LogAppends:
    """What a ``PartitionLog`` is to those who append to it. ``check_sequence`` is the broker's rule."""

    def __init__(
        self,
        topic: str,
        partition: int,
        local: LocalLog,
        log_start_offset: int,
        epochs: LeaderEpochCache,
        epoch_file: EpochFile,
        producers: ProducerStates,
        snapshots: SnapshotFiles,
        clock: Clock,
        check_sequence: CheckSequence,
        owner: LogOwner,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.log_start_offset = log_start_offset
        self.epochs = epochs
        self._epoch_file = epoch_file
        self.producers = producers
        self._owner = owner
        self._local = local
        self._snapshots = snapshots
        self._clock = clock
        self._check_sequence = check_sequence
        #: Of the client whose batch a leader appends next.
        self.client_host = UNKNOWN

    def __repr__(self) -> str:
        return f"LogAppends({self._local})"

    @property
    def log_end_offset(self) -> int:
        return self._local.log_end_offset

    @property
    def recovery_point(self) -> int:
        """Everything below this offset is synced."""
        return self._local.recovery_point

    @property
    def cleaned_to(self) -> int:
        """All below this offset was compacted."""
        return self._local.cleaned_to

    def verdict_on(self, header: BatchHeader) -> SequenceVerdict:
        """What becomes of a producer's batch by its sequence, if it is appended now. Changes nothing."""
        if header.producer_id < 0:
            return ACCEPTED
        entry = self.producers.get(header.producer_id)
        return self._check_sequence(entry, header, self.log_start_offset, self._local.config.unknown_producer)

    def append_as_leader(
        self, batch: memoryview | bytearray, header: BatchHeader, leader_epoch: int, now_ms: int
    ) -> AppendInfo:
        """Append one validated batch of a producer; its offset and epoch are written into ``batch`` in place.

        These are rows 16 to 22 of docs/produce-checks.md. ``now_ms`` is wall time. Raises ``LogError`` with the code
        for the client; then nothing was appended, unless it is ``StorageFailed`` from a flush that the settings ask
        for.
        """
        local = self._local
        log_start_offset = self.log_start_offset
        config = local.config
        stamps = config.is_log_append_time
        if local.failure is not None:
            local.check()
        size = len(batch)
        _, _, _, _, _, attributes, last_offset_delta, _, max_timestamp, producer_id, _, _, _ = header
        if producer_id >= 0:
            entry = self.producers.entries.get(producer_id)
            verdict = self._check_sequence(entry, header, log_start_offset, config.unknown_producer)
            if verdict is not ACCEPTED and verdict.kind is not VerdictKind.ACCEPT:
                if verdict.kind is VerdictKind.REJECT:
                    # What Kafka judges first is told first. A duplicate was judged when it was new.
                    _check_batch(size, header, config, now_ms)
                return _answer_without_append(verdict, log_start_offset, stamps=stamps)
            if entry is not None:
                if entry.txn_first_offset >= 0:
                    check_in_transaction(entry, header)
            else:
                monotonic_ms = self._clock.monotonic_ms()
                self._owner.producer_room.admit(self, config.max_producers, monotonic_ms, self.client_host)
        if size > config.segment_bytes or config.bounds_timestamps or attributes & LOG_APPEND_TIME_BIT:
            _check_batch(size, header, config, now_ms)
        if stamps:
            set_log_append_time(batch, 0, now_ms)
            max_timestamp = now_ms
            header = header._replace(max_timestamp=now_ms)
        base_offset = local.log_end_offset
        last_offset = base_offset + last_offset_delta
        if leader_epoch != self.epochs.latest_number:
            self._begin_epoch(leader_epoch, base_offset)
        segment = local.segments.active
        reason = roll_reason(segment, config, local.jitter_ms, size, last_offset, max_timestamp, now_ms)
        if reason is not None:
            self.roll(reason)
            segment = local.segments.active
        set_offset_and_epoch(batch, 0, base_offset, leader_epoch)
        if self._epoch_file.lags:
            self._epoch_file.catch_up(self.epochs)
        segment.write(batch)
        segment.note(last_offset, max_timestamp, size)
        local.log_end_offset = last_offset + 1
        self.producers.update(header, base_offset)
        if producer_id >= 0 and entry is None:
            self.producers.hosts.admit(producer_id, self.client_host)
        if last_offset + 1 - local.recovery_point >= config.flush_messages:
            local.flush()
        log_append_time_ms = now_ms if stamps else -1
        return _new_info(
            (base_offset, last_offset, log_append_time_ms, log_start_offset, last_offset, False, ErrorCode.NONE)
        )

    def _begin_epoch(self, leader_epoch: int, base_offset: int) -> None:
        """A leader's first batch in its epoch, unless it told the cache when it was elected."""
        if leader_epoch < self.epochs.latest_number:
            raise LogError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"an append in leader epoch {leader_epoch} after epoch {self.epochs.latest_number}",
            )
        self.epochs.assign(leader_epoch, base_offset)

    def roll(self, reason: str, first: BatchHeader | None = None) -> None:
        """Begin a new segment, with a snapshot of the producers at its base, which the owner may have written later.

        Raises ``StorageFailed``.
        """
        base_offset = self._local.roll(reason, first)
        entries = self.producers.mark(base_offset)
        if self._owner.writes_snapshots:
            self._snapshots.put_off(base_offset, entries)
            self._owner.snapshot_put_off(self.topic, self.partition)
            return
        try:
            self._snapshots.write(base_offset, self.producers)
            self._drop_superseded()
        except OSError as error:  # it can be rebuilt from the log, as it is at every start
            logger.warning("%s: cannot write the snapshot at %d: %s", self._local.directory, base_offset, error)

    def _drop_superseded(self) -> None:
        recovery_point = self._owner.checkpointed_recovery_point(self.topic, self.partition)
        self._snapshots.drop_superseded(self._local.segments.base_offsets, recovery_point, REMOVALS)


def _check_batch(size_bytes: int, header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    """Rows 16 and 17 of docs/produce-checks.md, as far as the header tells. Raises ``LogError``."""
    if not config.is_log_append_time and (problem := timestamp_problem(header, config, now_ms)):
        raise LogError(ErrorCode.INVALID_TIMESTAMP, problem)
    if size_bytes > config.segment_bytes:
        raise LogError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"a batch of {size_bytes} bytes, more than segment.bytes {config.segment_bytes}",
        )


def _answer_without_append(verdict: SequenceVerdict, log_start_offset: int, *, stamps: bool) -> AppendInfo:
    if verdict.kind is VerdictKind.REJECT:
        raise LogError(verdict.error_code, verdict.message)
    original = verdict.batch
    if original is None:
        return AppendInfo(
            -1,
            -1,
            -1,
            log_start_offset,
            verdict.must_commit_offset,
            duplicate=True,
            error_code=ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
        )
    return AppendInfo(
        original.base_offset,
        original.last_offset,
        original.timestamp if stamps else -1,
        log_start_offset,
        verdict.must_commit_offset,
        duplicate=True,
    )
