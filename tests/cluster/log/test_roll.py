"""When a segment is rolled (Kafka's LogSegment.shouldRoll), condition by condition."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cluster.log.config import LogConfig
from cluster.log.roll import INT32_MAX, SegmentState, roll_reason

CONFIG = LogConfig(segment_bytes=1000, segment_ms=100)
SEGMENT = SegmentState(base_offset=50, size_bytes=900, first_timestamp=1000, created_ms=5000, index_full=False)


def reason(segment=SEGMENT, *, jitter_ms=0, size=100, last_offset=60, timestamp=1000, now_ms=5000):
    return roll_reason(segment, CONFIG, jitter_ms, size, last_offset, timestamp, now_ms)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, None),
        ({"size": 101}, "size"),
        ({"timestamp": 1100}, None),
        ({"timestamp": 1101}, "time"),
        ({"timestamp": 1091, "jitter_ms": 10}, "time"),
        ({"timestamp": 1090, "jitter_ms": 10}, None),
        ({"timestamp": 1000, "now_ms": 99999}, None),
        ({"timestamp": -1, "now_ms": 5101}, "time"),
        ({"timestamp": -1, "now_ms": 5100}, None),
        ({"last_offset": 50 + INT32_MAX}, None),
        ({"last_offset": 51 + INT32_MAX}, "offset"),
    ],
)
def test_conditions(changes, expected):
    """Size, age by the records' own time (or the clock without timestamps), relative offset."""
    assert reason(**changes) == expected


def test_a_full_index_rolls():
    """No entry could be added any more."""
    assert reason(SEGMENT._replace(index_full=True)) == "index"


def test_an_empty_segment_is_never_rolled():
    """A roll would only make its like again, at the same base offset (KAFKA-6388)."""
    empty = SEGMENT._replace(size_bytes=0, index_full=True)
    assert reason(empty, size=5000, timestamp=99999, last_offset=50 + INT32_MAX) is None


def test_an_empty_segment_is_rolled_before_a_batch_that_its_indexes_cannot_point_at():
    """Entries hold 32 bits of offset above the base."""
    assert reason(SEGMENT._replace(size_bytes=0), last_offset=51 + INT32_MAX) == "offset"


def test_without_first_timestamp_the_clock_counts():
    """Time since the segment was made."""
    assert reason(SEGMENT._replace(first_timestamp=-1), timestamp=9999999, now_ms=5101) == "time"


BOUNDED = LogConfig(segment_bytes=10_000, segment_ms=100_000, min_segment_bytes=5000, min_segment_ms=10_000)


@pytest.mark.parametrize(
    ("config", "size_bytes", "age_ms", "expected"),
    [
        (BOUNDED, 4999, 9_999, None),
        (BOUNDED, 4999, 10_000, "time"),
        (BOUNDED, 5000, 0, "time"),
        (BOUNDED, 4999, -1, "time"),  # the clock was put back
        (replace(BOUNDED, segment_ms=50), 4999, 49, None),
        (replace(BOUNDED, segment_ms=50), 4999, 50, "time"),
        # max.compaction.lag.ms may be as small as it likes.
        (replace(BOUNDED, cleanup_policy=("compact",), max_compaction_lag_ms=1), 4999, 9_999, None),
    ],
)
def test_timestamps_do_not_roll_a_segment_that_is_small_and_new(config, size_bytes, age_ms, expected):
    """They are the client's, and each segment is an open file: 444 KB of requests had opened 1,731."""
    segment = SEGMENT._replace(size_bytes=size_bytes)
    now_ms = segment.created_ms + age_ms
    assert roll_reason(segment, config, 0, 100, 60, segment.first_timestamp + 10**9, now_ms) == expected
