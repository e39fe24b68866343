"""Timestamps: whether a producer's are acceptable, and which record is the first at or after a given one.

Owns the check of docs/produce-checks.md row 16 as far as a header tells, and the search behind ListOffsets. The search
is the only place in this room that looks into batches.
"""

from __future__ import annotations

from collections.abc import Iterable

from cluster.log.config import LogConfig
from cluster.log.segment import Segment
from cluster.protocol.batch import BatchHeader
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


def find_timestamp(segments: Iterable[Segment], timestamp: int, start_offset: int) -> tuple[int, int] | None:
    """(timestamp, offset) of the first record from ``start_offset`` on that is as new as ``timestamp`` or newer.

    Raises ``CorruptBatch`` if a batch cannot be read.
    """
    for segment in segments:
        if segment.max_timestamp < timestamp or segment.next_offset <= start_offset:
            continue
        before = segment.time_index.offset_before_timestamp(timestamp)
        for position, header in segment.headers(segment.offset_index.position_before_offset(before)):
            if header.max_timestamp < timestamp or header.last_offset < start_offset:
                continue
            for record in decode_records(segment.file.pread(header.size_bytes, position)):
                if record.timestamp >= timestamp and record.offset >= start_offset:
                    return record.timestamp, record.offset
    return None
