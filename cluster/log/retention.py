"""Which segments of a log are old enough to go (Kafka's UnifiedLog). Pure.

Owns the three rules and their order: below the log start, above ``retention.bytes``, older than ``retention.ms``. Does
not own the deletion (``partition_log.py``) or when one looks (the broker's timers).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from cluster.log.config import LogConfig
from cluster.log.segment import Segment


class SegmentFacts(NamedTuple):
    """What retention asks of a segment. ``end_offset`` is where the next one begins, or the log's end for the last.

    ``newest_ms`` is its greatest timestamp; for records without timestamps the time at which it was made or opened.
    """

    base_offset: int
    end_offset: int
    size_bytes: int
    newest_ms: int


def segment_facts(segments: Sequence[Segment], log_end_offset: int) -> list[SegmentFacts]:
    """Of all segments of a log that ends there."""
    ends = [segment.base_offset for segment in segments[1:]] + [log_end_offset]
    return [
        SegmentFacts(
            segment.base_offset,
            end,
            segment.size_bytes,
            segment.max_timestamp if segment.max_timestamp >= 0 else segment.created_ms,
        )
        for segment, end in zip(segments, ends, strict=True)
    ]


class ExpiredSegment(NamedTuple):
    """A segment that goes, and why: ``log-start``, ``size`` or ``time``."""

    segment: SegmentFacts
    reason: str


def expired_segments(
    segments: Sequence[SegmentFacts],
    config: LogConfig,
    *,
    log_start_offset: int,
    high_watermark: int,
    now_ms: int,
) -> list[ExpiredSegment]:
    """The segments that go, oldest first: always a prefix of ``segments``, and nothing at or above ``high_watermark``.

    Each rule continues where the one before it stopped, and stops at the first segment that it spares. The last segment
    may be among them, unless it is empty: then a new one must be begun before. A topic whose ``cleanup.policy`` lacks
    ``delete`` loses only what lies below its log start. ``now_ms`` is wall time.
    """
    rules: list[tuple[str, Callable[[SegmentFacts, int], bool]]] = [
        ("log-start", lambda segment, _left: segment.end_offset <= log_start_offset),
    ]
    if "delete" in config.cleanup_policy:
        if config.retention_bytes >= 0:
            rules.append(("size", lambda segment, left: left - segment.size_bytes >= config.retention_bytes))
        if config.retention_ms >= 0:
            rules.append(("time", lambda segment, _left: now_ms - segment.newest_ms > config.retention_ms))
    left = sum(segment.size_bytes for segment in segments)
    gone: list[ExpiredSegment] = []
    for reason, applies in rules:
        while len(gone) < len(segments):
            segment = segments[len(gone)]
            is_last_and_empty = len(gone) + 1 == len(segments) and segment.size_bytes == 0
            if is_last_and_empty or segment.end_offset > high_watermark or not applies(segment, left):
                break
            left -= segment.size_bytes
            gone.append(ExpiredSegment(segment, reason))
    return gone
