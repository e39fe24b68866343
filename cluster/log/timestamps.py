"""Timestamps: whether a producer's are acceptable, and which record is the first at or after a given one.

Owns the check of docs/produce-checks.md row 16 as far as a header tells, and the search behind ListOffsets. The search
is the only place in this room that looks into batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from cluster.log.config import LogConfig
from cluster.log.segment import Segment
from cluster.protocol.batch import CODEC_NONE, BatchHeader
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


#: An uncompressed batch with no more records than this is quick to scan.
FEW_RECORDS = 1000

#: The timestamp and offset of a record, if there is one.
FoundTime = tuple[int, int] | None
#: Looks into one batch for the record that is wanted. It depends on no file. Raises ``CorruptBatch``.
Look = Callable[[], FoundTime]


def batch_for_timestamp(
    segments: Iterable[Segment], timestamp: int, start_offset: int
) -> tuple[Look, bool, int] | None:
    """The first batch that may hold a record from ``start_offset`` on that is as new as ``timestamp`` or newer.

    What is returned is the look into it, whether that may take long, and the offset to continue from if it finds
    nothing. Raises ``OSError`` and ``CorruptBatch``.
    """
    for segment in segments:
        if segment.max_timestamp < timestamp or segment.next_offset <= start_offset:
            continue
        before = segment.time_index.offset_before_timestamp(timestamp)
        for position, header in segment.headers(segment.offset_index.position_before_offset(before)):
            if header.max_timestamp < timestamp or header.last_offset < start_offset:
                continue
            batch = segment.file.pread(header.size_bytes, position)
            is_long = header.codec != CODEC_NONE or header.record_count > FEW_RECORDS
            return partial(_look, batch, timestamp, start_offset), is_long, header.last_offset + 1
    return None


def _look(batch: bytes, timestamp: int, start_offset: int) -> FoundTime:
    for record in decode_records(batch):
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return record.timestamp, record.offset
    return None
