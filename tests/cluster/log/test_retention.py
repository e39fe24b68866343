"""Retention: which segments go and why, and what a log is after they are gone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.log.config import LogConfig
from cluster.log.errors import StorageFailed
from cluster.log.removal import Doomed
from cluster.log.retention import SegmentFacts, expired_segments
from cluster.seams.memory_storage import MemoryStorage
from tests.cluster.log.builders import (
    DIRECTORY,
    NOW_MS,
    Bench,
    append,
    bench,
    content,
    make_batch,
    open_log,
    produce,
    read_all,
)

DAY_MS = 86_400_000
KEEP = LogConfig(retention_ms=-1)


@pytest.fixture
def on() -> Bench:
    return bench()


def chain(*sizes: int, age_ms: int = 0) -> list[SegmentFacts]:
    """Segments of ten offsets each; the last one's size may be 0."""
    facts = []
    for number, size in enumerate(sizes):
        base = 10 * number
        facts.append(SegmentFacts(base, base + 10 if size else base, size, NOW_MS - age_ms))
    return facts


def gone(segments: list[SegmentFacts], config: LogConfig, log_start: int = 0, high_watermark: int = 1000) -> list[str]:
    """base:reason of each."""
    found = expired_segments(segments, config, log_start_offset=log_start, high_watermark=high_watermark, now_ms=NOW_MS)
    return [f"{expired.segment.base_offset}:{expired.reason}" for expired in found]


@pytest.mark.parametrize(
    ("limit", "count"), [(-1, 0), (0, 3), (99, 2), (100, 2), (101, 1), (200, 1), (201, 0), (300, 0), (999, 0)]
)
def test_size_goes_down_to_the_limit_but_not_below(limit, count):
    """A segment goes if what is left is still retention.bytes or more (Kafka's UnifiedLog)."""
    assert len(gone(chain(100, 100, 100), replace(KEEP, retention_bytes=limit))) == count


def test_time_is_the_newest_records_and_the_limit_itself_is_kept():
    """now - newest > retention.ms, oldest first, up to the first that is young enough."""
    segments = chain(1, 1, 1)
    segments[0] = segments[0]._replace(newest_ms=NOW_MS - 101)
    segments[1] = segments[1]._replace(newest_ms=NOW_MS - 100)
    segments[2] = segments[2]._replace(newest_ms=NOW_MS - 5000)
    assert gone(segments, LogConfig(retention_ms=100)) == ["0:time"]
    assert gone(segments, LogConfig(retention_ms=99)) == ["0:time", "10:time", "20:time"]
    assert gone(segments, LogConfig(retention_ms=-1)) == []


def test_records_from_the_future_are_kept():
    """A timestamp ahead of the clock is never older than the limit."""
    assert gone(chain(1, 1, age_ms=-DAY_MS), LogConfig(retention_ms=0)) == []


def test_nothing_above_the_high_watermark_goes():
    """A segment goes only if all of it is committed, whatever the rule."""
    segments = chain(1, 1, 1, age_ms=DAY_MS)
    config = LogConfig(retention_ms=1, retention_bytes=0)
    for watermark, count in ((0, 0), (9, 0), (10, 1), (19, 1), (20, 2), (30, 3)):
        assert len(gone(segments, config, log_start=30, high_watermark=watermark)) == count


def test_the_rules_follow_each_other():
    """First what lies below the log start, then size, then time; each goes on where the other stopped."""
    segments = chain(100, 100, 100, 100)
    segments[2] = segments[2]._replace(newest_ms=NOW_MS - 1000)
    config = LogConfig(retention_bytes=200, retention_ms=500)
    assert gone(segments, config, log_start=10) == ["0:log-start", "10:size", "20:time"]


def test_a_compacted_topic_loses_only_what_lies_below_its_start():
    """Without ``delete`` in cleanup.policy neither size nor time counts."""
    config = LogConfig(retention_ms=1, retention_bytes=0, cleanup_policy=("compact",))
    segments = chain(1, 1, 1, age_ms=DAY_MS)
    assert gone(segments, config, log_start=15) == ["0:log-start"]
    both = replace(config, cleanup_policy=("compact", "delete"))
    assert len(gone(segments, both, log_start=15)) == 3


def test_an_empty_last_segment_stays():
    """To delete it would only make its like again."""
    assert gone(chain(1, 0, age_ms=DAY_MS), LogConfig(retention_ms=1, retention_bytes=0)) == ["0:size"]
    assert gone(chain(0, age_ms=DAY_MS), LogConfig(retention_ms=1, retention_bytes=0)) == []


@given(
    sizes=st.lists(st.integers(1, 500), max_size=8),
    ages=st.lists(st.integers(-100, 300), min_size=9, max_size=9),
    limits=st.tuples(st.integers(-1, 2000), st.integers(-1, 200)),
    start=st.integers(0, 90),
    watermark=st.integers(0, 90),
)
def test_against_one_segment_at_a_time(sizes, ages, limits, start, watermark):
    """A prefix goes; each of it has its reason, and the first that stays has none, by the rules said one by one."""
    segments = [facts._replace(newest_ms=NOW_MS - age) for facts, age in zip(chain(*sizes), ages, strict=False)]
    config = LogConfig(retention_bytes=limits[0], retention_ms=limits[1])
    found = expired_segments(segments, config, log_start_offset=start, high_watermark=watermark, now_ms=NOW_MS)
    assert [expired.segment for expired in found] == segments[: len(found)]
    reasons = [expired.reason for expired in found]
    assert reasons == sorted(reasons, key=("log-start", "size", "time").index)
    for number, segment in enumerate(segments):
        left = sum(sizes[number:])
        holds = {
            "log-start": segment.end_offset <= start,
            "size": 0 <= limits[0] <= left - segment.size_bytes,
            "time": 0 <= limits[1] < NOW_MS - segment.newest_ms,
        }
        if number < len(found):
            assert holds[found[number].reason] and segment.end_offset <= watermark
        else:
            assert segment.end_offset > watermark or not any(holds.values())
            break


SMALL = LogConfig(segment_bytes=150, retention_ms=1000, file_delete_delay_ms=60)


def fill(on: Bench, batches: int, doomed: Doomed | None = None, age_ms: int = 5000):
    log = open_log(on, SMALL, doomed=doomed)
    for sequence in range(batches):
        produce(log, sequence, timestamp=NOW_MS - age_ms)
    return log


def test_old_segments_are_renamed_and_removed_later(on):
    """``.deleted`` at once, gone after file.delete.delay.ms; what is being read from them stays readable."""
    doomed = Doomed(on.clock)
    log = fill(on, 6, doomed)
    moves = []
    log._owner.log_start_moved = lambda log, before, reason: moves.append((before, log.log_start_offset, reason))
    first = log.read(0, 1000, 6).records
    expected = content(first)
    found = log.retain(5, NOW_MS)
    assert [(e.segment.base_offset, e.reason) for e in found] == [(0, "time"), (2, "time")]
    assert (log.log_start_offset, log.log_end_offset, log.segment_base_offsets) == (4, 6, [4])
    assert moves == [(0, 4, "time")]
    assert content(first) == expected
    names = on.storage.listdir(DIRECTORY)
    assert f"{0:020d}.log.deleted" in names and f"{2:020d}.index.deleted" in names
    assert not any(name.startswith(f"{2:020d}") and not name.endswith(".deleted") for name in names)
    on.clock.advance_ms(59)
    assert doomed.take_due() == []
    on.clock.advance_ms(1)
    for removal in doomed.take_due():
        removal.run(on.storage)
    assert not any(name.endswith(".deleted") for name in on.storage.listdir(DIRECTORY))
    with pytest.raises(OSError, match="closed"):
        content(first)


def test_when_all_has_expired_a_new_segment_is_begun(on):
    """The active segment goes too, offsets go on, and the producers are still known."""
    log = fill(on, 5)
    assert len(log.retain(5, NOW_MS)) == 3
    assert (log.log_start_offset, log.log_end_offset, log.segment_base_offsets) == (5, 5, [5])
    assert f"{5:020d}.snapshot" in on.storage.listdir(DIRECTORY)
    assert log.retain(5, NOW_MS) == []
    assert produce(log, 4).duplicate and produce(log, 5).first_offset == 5
    again = open_log(on, SMALL)
    assert (again.log_start_offset, again.log_end_offset) == (5, 6)
    assert produce(again, 5).duplicate and produce(again, 6).first_offset == 6


def test_epochs_and_snapshots_follow_the_start(on):
    """The epoch that holds at the new start begins there; snapshots below it are gone."""
    log = open_log(on, SMALL)
    for epoch in range(6):
        append(log, make_batch(timestamp=NOW_MS - 5000), leader_epoch=epoch)
    log.retain(4, NOW_MS)
    assert log.epochs.entries == ((4, 4), (5, 5))
    assert [name for name in on.storage.listdir(DIRECTORY) if "snapshot" in name] == [f"{4:020d}.snapshot"]


def test_segments_below_a_checkpointed_start_go_at_the_next_look(on):
    """After a crash between the two the start is known and the files are still there."""
    log = fill(on, 6, age_ms=0)
    log = open_log(on, SMALL, log_start_offset=3)
    assert (log.log_start_offset, log.segment_base_offsets) == (3, [0, 2, 4])
    moves: list[int] = []
    log._owner.log_start_moved = lambda _log, before, _reason: moves.append(before)
    assert [(e.segment.base_offset, e.reason) for e in log.retain(6, NOW_MS)] == [(0, "log-start")]
    assert (log.log_start_offset, log.segment_base_offsets, moves) == (3, [2, 4], [])


@pytest.mark.parametrize("renames", range(1, 9))
def test_a_crash_amid_a_deletion_leaves_a_log_that_begins_later(on, monkeypatch, renames):
    """After each rename: the next start has a log without a hole, and nothing that was to stay is missing."""
    log = fill(on, 9)
    expected = read_all(log)
    real, left = MemoryStorage.rename, renames

    def rename(storage, source, target):
        nonlocal left
        if target.endswith(".deleted"):
            left -= 1
            if left < 0:
                raise OSError(5, "I/O error")
        real(storage, source, target)

    monkeypatch.setattr(MemoryStorage, "rename", rename)
    with pytest.raises(StorageFailed):
        log.retain(9, NOW_MS)
    monkeypatch.undo()
    again = open_log(on, SMALL)
    assert again.log_end_offset == 9 and again.log_start_offset in (2, 4, 6)
    assert expected.endswith(read_all(again))
    assert produce(again, 8).duplicate


def test_records_without_timestamps_age_from_when_the_segment_was_opened(on):
    """As old as they can be shown to be: after a restart they are kept longer, never shorter."""
    log = open_log(on, SMALL)
    for _ in range(4):
        append(log, make_batch(timestamp=-1))
    assert log.retain(4, NOW_MS + 1000) == []
    assert len(log.retain(4, NOW_MS + 1001)) == 2


@pytest.mark.parametrize("how", ["retention", "deleted", "started over"])
def test_a_log_that_lost_all_its_records_ends_where_it_did_after_a_power_loss(on, how):
    """Not at 0: the name of the segment that stays is synced before those of the others go."""
    log = open_log(on, LogConfig(segment_bytes=200, retention_ms=1000))
    for _ in range(6):
        append(log, make_batch(1, timestamp=NOW_MS))
    log.flush()
    if how == "retention":
        assert log.retain(6, NOW_MS + DAY_MS)
        end = 6
    elif how == "deleted":
        end = log.segment_base_offsets[-1]
        append(log, make_batch(1, timestamp=NOW_MS))
        log.advance_log_start_offset(log.segment_base_offsets[-1])
    else:
        end = 40
        log.truncate_fully_and_start_at(end)
    on.storage.power_loss()
    again = open_log(on, LogConfig(segment_bytes=200), clean=False)
    assert again.log_end_offset >= end
