"""Timestamps: whether a producer's are acceptable, and which record is the first at or after a given one.

Owns the check of docs/produce-checks.md row 16 as far as a header tells, and the search behind ListOffsets. The search
is the only place in this room that looks into batches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from cluster.log.config import LogConfig
from cluster.log.index import position_before_timestamp
from cluster.log.local_log import LocalLog
from cluster.log.segment import Segment
from cluster.protocol.batch import CODEC_NONE, BatchHeader, crc_ok
from cluster.protocol.errors import CorruptBatch, InvalidBatch
from cluster.protocol.record_checks import Effort, walk_records
from cluster.protocol.records import decode_records


def timestamp_problem(header: BatchHeader, config: LogConfig, now_ms: int) -> str | None:
    """What is wrong with a batch's timestamps under CreateTime, or None.

    Judged by the first record's timestamp and the greatest one, which the header has; -1 (no timestamp) is exempt.
    """
    if header.is_log_append_time:
        return "a producer must not set the timestamp type LogAppendTime"
    if header.base_timestamp >= 0 and now_ms - header.base_timestamp > config.message_timestamp_before_max_ms:
        return f"timestamp {header.base_timestamp} is too far in the past of {now_ms}"
    if header.max_timestamp >= 0 and header.max_timestamp - now_ms > config.message_timestamp_after_max_ms:
        return f"timestamp {header.max_timestamp} is too far in the future of {now_ms}"
    return None


#: Headers that are read before others have their turn: less than a millisecond, or two if each is a read of its own.
HEADERS_AT_ONCE = 500
#: Bytes that take as long to decode as it takes to look at a record.
_RECORD_BYTES = 32
#: An uncompressed batch with no more records than this is quick to scan.
FEW_RECORDS = 1000

#: The timestamp and offset of a record, if there is one.
FoundTime = tuple[int, int] | None
#: Looks into one batch for the record that is wanted. It depends on no file. Raises ``CorruptBatch``.
Look = Callable[[], FoundTime]


class PossibleBatch(NamedTuple):
    """A batch that may hold the record that is wanted: the look into it, and whether that may take long."""

    look: Look
    is_long: bool


class TimestampSearch:
    """The search for the first record from ``start_offset`` on that is as new as ``timestamp`` or newer.

    Indexes say where in a segment it may begin. They cannot bound it: behind a log start, or where no record is as new
    as the header of its batch says, many batches may follow of which none is new enough. So it goes in steps. In
    between, the log may change: batches are known by their offsets, and their places only as long as nothing is cut.
    """

    def __init__(self, local: LocalLog, timestamp: int, start_offset: int) -> None:
        self.is_over = False
        self._local = local
        self._timestamp = timestamp
        #: All before was examined.
        self._offset = start_offset
        self._place: tuple[Segment, int, int] | None = None

    def __repr__(self) -> str:
        return f"TimestampSearch({self._timestamp}, from {self._offset})"

    def step(self) -> PossibleBatch | None:
        """The next batch that may hold the record; None after ``HEADERS_AT_ONCE``, or if there is none: ``is_over``.

        Raises ``OSError`` and ``CorruptBatch``.
        """
        local, timestamp, left = self._local, self._timestamp, HEADERS_AT_ONCE
        for segment in local.segments.from_offset(self._offset):
            if segment.max_timestamp < timestamp or segment.next_offset <= self._offset:
                continue
            for position, header in segment.headers(self._position_in(segment)):
                if not left:
                    self._place = segment, position, local.cuts
                    return None
                left -= 1
                if header.last_offset < self._offset:
                    continue
                if header.max_timestamp >= timestamp:
                    batch = segment.file.pread(header.size_bytes, position)
                    look = BatchLook(batch, header, timestamp, self._offset)
                    self._offset = header.next_offset
                    self._place = segment, position + header.size_bytes, local.cuts
                    return PossibleBatch(look, header.codec != CODEC_NONE or header.record_count > FEW_RECORDS)
                self._offset = header.next_offset
        self.is_over = True
        return None

    def _position_in(self, segment: Segment) -> int:
        if self._place is not None and self._place[0] is segment and self._place[2] == self._local.cuts:
            return self._place[1]
        return max(
            position_before_timestamp(segment.offset_index, segment.time_index, self._timestamp),
            segment.offset_index.position_before_offset(self._offset),
        )


@dataclass(frozen=True, slots=True)
class BatchLook:
    """The look into one batch, for the first record from ``start_offset`` on that is as new as ``timestamp``."""

    batch: bytes
    header: BatchHeader
    timestamp: int
    start_offset: int

    @property
    def weight(self) -> int:
        """What it takes: as much as to decode this many bytes."""
        return len(self.batch) + _RECORD_BYTES * self.header.record_count

    def __call__(self) -> FoundTime:
        header, least, start_offset = self.header, self.timestamp, self.start_offset
        if not crc_ok(self.batch, 0, header.size_bytes):
            raise CorruptBatch("the checksum of the batch is wrong")
        if not header.is_log_append_time:
            # The times alone are several times quicker than the records, where offsets have no holes.
            try:
                facts = walk_records(memoryview(self.batch), header, Effort.all())
            except InvalidBatch as error:
                raise CorruptBatch(error.message) from error
            if facts.has_offsets_in_order:
                base_offset, base_timestamp = header.base_offset, header.base_timestamp
                for offset, delta in enumerate(facts.deltas, base_offset):
                    if base_timestamp + delta >= least and offset >= start_offset:
                        return base_timestamp + delta, offset
                return None
        for record in decode_records(self.batch):
            if record.timestamp >= least and record.offset >= start_offset:
                return record.timestamp, record.offset
        return None
