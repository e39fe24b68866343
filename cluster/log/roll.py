"""When a segment is full and a new one begins (Kafka's LogSegment.shouldRoll). Pure.

Owns the conditions. Does not own what a roll does (``partition_log.py``).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from cluster.log.config import LogConfig
from cluster.protocol.batch import BatchHeader

INT32_MAX = 2**31 - 1


class RollState(Protocol):
    """What of a segment decides about its roll. ``first_timestamp`` is its first batch's max timestamp, or -1."""

    @property
    def base_offset(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def first_timestamp(self) -> int: ...
    @property
    def created_ms(self) -> int: ...
    @property
    def index_full(self) -> bool: ...


class SegmentState(NamedTuple):
    """A segment as it will be, for deciding about batches that are not written yet."""

    base_offset: int
    size_bytes: int
    first_timestamp: int
    created_ms: int
    index_full: bool


def roll_reason(
    segment: RollState,
    config: LogConfig,
    jitter_ms: int,
    incoming_bytes: int,
    incoming_last_offset: int,
    incoming_max_timestamp: int,
    now_ms: int,
) -> str | None:
    """Why a batch must go to a new segment, or None.

    Time is the records' own: how much newer the batch is than the segment's first one; without timestamps it is the
    time since the segment was made. These are the client's numbers, and each segment is an open file: so they do not
    roll a segment that is both small and new by our own clock (``min_segment_bytes``, ``min_segment_ms``).

    An empty segment takes any batch that its indexes can point at: a roll would only make its like again (KAFKA-6388).
    One that lies beyond their 32 bits begins a segment of its own, as a compacted log's first batch may for a new
    follower (Kafka's ``LogSegment.shouldRoll``).
    """
    if incoming_last_offset - segment.base_offset > INT32_MAX:
        return "offset"
    if segment.size_bytes == 0:
        return None
    if segment.size_bytes > config.segment_bytes - incoming_bytes:
        return "size"
    if segment.first_timestamp >= 0 and incoming_max_timestamp >= 0:
        age_ms = incoming_max_timestamp - segment.first_timestamp
    else:
        age_ms = now_ms - segment.created_ms
    if age_ms > config.longest_segment_ms - jitter_ms and _may_roll_by_time(segment, config, now_ms):
        return "time"
    return "index" if segment.index_full else None


def _may_roll_by_time(segment: RollState, config: LogConfig, now_ms: int) -> bool:
    """A clock that was put back keeps no segment open."""
    if segment.size_bytes >= config.min_segment_bytes:
        return True
    return not 0 <= now_ms - segment.created_ms < min(config.min_segment_ms, config.segment_ms)


def next_base_offset(log_end_offset: int, first: BatchHeader | None) -> int:
    """Where a new segment begins, whose first batch is to be ``first``: where the log ends.

    The batch may lie above that, where compaction has left a hole. Kafka's ``LocalLog.roll`` begins with the batch;
    here a hole between segments that were not synced means a loss (``recovery.py``). Only if 32 bits of the segment's
    indexes could not point at the batch, the segment begins with it.
    """
    if first is not None and first.last_offset - log_end_offset > INT32_MAX:
        return first.base_offset
    return log_end_offset
