"""Compaction: which records stay, what a batch becomes, what is due. The files are in test_cleaner.py."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cluster.log.compaction import CleanableSegment, LatestOffsets, NewestBatches, cleanable, compacted, group_segments
from cluster.log.config import LogConfig
from cluster.protocol.batch import crc_ok, parse_header, set_log_append_time
from cluster.protocol.records import NewRecord, build_batch, decode_records
from tests.cluster.log.builders import NOW_MS

COMPACT = LogConfig(cleanup_policy=("compact",))
RETENTION_MS = 1000


def batch_of(*pairs: tuple[bytes | None, bytes | None], base_offset: int = 0, **fields) -> bytes:
    records = [NewRecord(NOW_MS + number, key, value) for number, (key, value) in enumerate(pairs)]
    return build_batch(records, base_offset=base_offset, leader_epoch=4, **fields)


def run(
    batch: bytes, latest: LatestOffsets, now_ms: int = NOW_MS, protected=frozenset(), *, is_aborted: bool = False
) -> bytes:
    after = compacted(
        batch,
        parse_header(batch),
        latest,
        is_aborted=is_aborted,
        protected=protected,
        now_ms=now_ms,
        delete_retention_ms=RETENTION_MS,
    )
    assert not after or crc_ok(after, 0, len(after))
    return after


def latest_of(*batches: bytes, max_keys: int = 100) -> LatestOffsets:
    latest = LatestOffsets(max_keys)
    for batch in batches:
        latest.note(batch, parse_header(batch))
    return latest


@pytest.mark.parametrize("codec", range(5))
def test_a_batch_keeps_everything_but_the_older_records(codec):
    """Offsets, deltas, epoch, producer, sequence, codec and timestamps stay; the count and the checksum are new."""
    fields = {"codec": codec, "producer_id": 9, "producer_epoch": 2, "base_sequence": 5}
    batch = batch_of((b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"c", b"4"), base_offset=10, **fields)
    newer = batch_of((b"c", b"5"), base_offset=14)
    after = run(batch, latest_of(batch, newer))
    before_header, header = parse_header(batch), parse_header(after)
    same = {"base_offset", "leader_epoch", "attributes", "last_offset_delta", "base_timestamp", "producer_id",
            "producer_epoch", "base_sequence"}  # fmt: skip
    assert {name: getattr(header, name) for name in same} == {name: getattr(before_header, name) for name in same}
    assert (header.record_count, header.max_timestamp) == (2, NOW_MS + 2)
    assert decode_records(after) == [decode_records(batch)[1], decode_records(batch)[2]]


def test_what_need_not_change_is_the_same_object():
    """Bytes are only rewritten where something goes."""
    batch = batch_of((b"a", b"1"), (b"b", b"2"))
    assert run(batch, latest_of(batch)) is batch
    assert run(batch, latest_of()) is batch


def test_records_without_a_key_go():
    """A compacted topic should have none; they could never be replaced."""
    batch = batch_of((None, b"1"), (b"b", b"2"))
    assert [record.key for record in decode_records(run(batch, latest_of(batch)))] == [b"b"]


def test_a_tombstone_stays_until_the_horizon_of_its_first_pass():
    """Bit 6 and the horizon in place of the base timestamp, deltas rewritten; a later pass drops it when it is due."""
    batch = batch_of((b"a", b"1"), (b"b", None))
    latest = latest_of(batch)
    first = run(batch, latest)
    header = parse_header(first)
    assert header.attributes == 0x40 and header.delete_horizon_ms == header.base_timestamp == NOW_MS + RETENTION_MS
    assert decode_records(first) == decode_records(batch)
    assert run(first, latest, NOW_MS + RETENTION_MS - 1) is first
    last = run(first, latest, NOW_MS + RETENTION_MS)
    assert [(record.key, record.value) for record in decode_records(last)] == [(b"a", b"1")]
    assert decode_records(last)[0].timestamp == NOW_MS
    assert parse_header(last).delete_horizon_ms == NOW_MS + RETENTION_MS


def test_an_older_tombstone_goes_at_once():
    """A newer record of the key says more than the tombstone."""
    batch = batch_of((b"a", None), (b"a", b"1"))
    assert [record.value for record in decode_records(run(batch, latest_of(batch)))] == [b"1"]


@pytest.mark.parametrize("codec", [0, 4])
def test_an_emptied_batch_goes_unless_its_producer_needs_it(codec):
    """Its header alone stays: offsets and sequence are known, and there is nothing to read in it."""
    batch = batch_of((b"a", b"1"), (b"a", b"2"), base_offset=3, producer_id=9, producer_epoch=0, base_sequence=7,
                     codec=codec)  # fmt: skip
    latest = latest_of(batch, batch_of((b"a", b"3"), base_offset=5))
    assert run(batch, latest) == b""
    kept = run(batch, latest, protected=frozenset({3}))
    header = parse_header(kept)
    assert len(kept) == 61 and header.record_count == 0 and decode_records(kept) == []
    assert (header.base_offset, header.last_offset, header.base_sequence, header.last_sequence) == (3, 4, 7, 8)
    assert (header.producer_id, header.codec, header.max_timestamp) == (9, 0, NOW_MS + 1)
    assert run(kept, latest, protected=frozenset({3})) is kept
    assert run(kept, latest) == b""


def test_of_each_producer_that_is_known_five_batches_stay():
    """The newest in what is compacted. Markers have no sequence and take no room; unknown producers have none."""
    newest = NewestBatches([1, 2])
    for offset in range(40):
        fields = {"producer_id": offset % 4, "producer_epoch": 0}
        newest.note(parse_header(batch_of((b"a", b""), base_offset=offset, base_sequence=offset // 4, **fields)))
        newest.note(parse_header(batch_of((b"a", b""), base_offset=100 + offset, control=True, **fields)))
    assert newest.base_offsets() == {*range(21, 40, 4), *range(22, 40, 4)}


def test_control_batches_are_left_whole():
    """A marker has a key that is no record's: it shadows nothing, and nothing shadows it."""
    control = batch_of((b"\0\0\0\1", b"\0\0\0\0\0\0"), control=True, producer_id=1, producer_epoch=0)
    assert len(latest_of(control)) == 0
    assert run(control, latest_of(batch_of((b"\0\0\0\1", b"3"), base_offset=9))) is control


def test_a_committed_batch_is_like_any_other():
    """It loses what is older, keeps its tombstone until the horizon, and stays transactional."""
    fields = {"transactional": True, "producer_id": 1, "producer_epoch": 0, "base_sequence": -1}
    batch = batch_of((b"a", b"1"), (b"a", b"2"), (b"b", None), **fields)
    after = run(batch, latest_of(batch))
    assert parse_header(after).is_transactional and parse_header(after).producer_id == 1
    assert [(record.offset, record.value) for record in decode_records(after)] == [(1, b"2"), (2, None)]
    assert run(batch, latest_of(batch, batch_of((b"a", b"3"), (b"b", b"4"), base_offset=3))) == b""


def test_an_aborted_batch_goes():
    """All of it, newest or not; the header of one that its producer needs stays."""
    fields = {"transactional": True, "producer_id": 1, "producer_epoch": 0, "base_sequence": 4}
    batch = batch_of((b"a", b"1"), (b"b", None), **fields)
    assert run(batch, latest_of(), is_aborted=True) == b""
    kept = run(batch, latest_of(), is_aborted=True, protected=frozenset({0}))
    header = parse_header(kept)
    assert header.is_transactional and (header.record_count, header.last_sequence) == (0, 5)
    assert run(kept, latest_of(), is_aborted=True, protected=frozenset({0})) is kept


def test_log_append_time_stays_the_batchs():
    """Under LogAppendTime the greatest timestamp is every record's, so it does not shrink."""
    batch = bytearray(batch_of((b"a", b"1"), (b"b", b"2"), base_offset=0))
    set_log_append_time(batch, 0, NOW_MS + 500)
    after = run(bytes(batch), latest_of(bytes(batch), batch_of((b"b", b"3"), base_offset=2)))
    assert [record.timestamp for record in decode_records(after)] == [NOW_MS + 500]


def test_the_map_is_full_at_its_limit():
    """Keys count once, however often they come."""
    latest = latest_of(batch_of((b"a", b"1"), (b"a", b"2"), (b"b", b"3")), max_keys=3)
    assert not latest.is_full and latest.get(b"a") == 1 and latest.get(b"z") == -1
    latest = latest_of(batch_of((b"a", b"1"), (b"c", b"2"), (b"b", b"3")), max_keys=3)
    assert latest.is_full


def segments(*sizes: int, newest_ms: int = NOW_MS) -> list[CleanableSegment]:
    return [CleanableSegment(10 * n, 10 * n + 10, size, newest_ms, newest_ms) for n, size in enumerate(sizes)]


def look(found: list[CleanableSegment], config: LogConfig = COMPACT, **fields):
    values = {"cleaned_to": 0, "log_start_offset": 0, "stable_offset": 1000, "now_ms": NOW_MS, **fields}
    return cleanable(found, config, **values)


def test_the_dirty_share_decides():
    """Dirty bytes over all bytes that would be read, against min.cleanable.dirty.ratio."""
    what = look(segments(100, 50, 50), cleaned_to=10)
    assert what == (10, 30, 0.5, True)
    what = look(segments(101, 50, 50), cleaned_to=10)
    assert what is not None and not what.is_due
    what = look(segments(101, 50, 50), replace(COMPACT, min_cleanable_dirty_ratio=0.1), cleaned_to=10)
    assert what is not None and what.is_due
    assert look(segments(100, 50, 50), cleaned_to=30) is None and look([]) is None


def test_nothing_beyond_the_stable_offset_or_younger_than_the_lag():
    """Whole segments only: the first that is not wholly stable, or too young, ends what may be compacted."""
    what = look(segments(1, 1, 1), stable_offset=29)
    assert what is not None and what.end_offset == 20
    assert look(segments(1, 1, 1), stable_offset=9) is None
    lagging = replace(COMPACT, min_compaction_lag_ms=100)
    young = segments(1, 1, 1)
    young[0] = young[0]._replace(newest_ms=NOW_MS - 100)
    what = look(young, lagging)
    assert what is not None and what.end_offset == 10
    young[0] = young[0]._replace(newest_ms=NOW_MS - 99)
    assert look(young, lagging) is None


def test_a_dirty_record_older_than_the_longest_lag_is_enough():
    """max.compaction.lag.ms overrules the ratio."""
    config = replace(COMPACT, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=100)
    what = look(segments(100, 1), config, cleaned_to=10)
    assert what is not None and not what.is_due
    what = look(segments(100, 1), config, cleaned_to=10, now_ms=NOW_MS + 101)
    assert what is not None and what.is_due


def test_a_compaction_begins_at_the_log_start():
    """What was deleted below it is not asked for."""
    what = look(segments(1, 1, 1), log_start_offset=12)
    assert what is not None and what.first_dirty_offset == 12


def test_segments_are_grouped_as_far_as_one_segment_reaches():
    """Neighbors whose bytes, index and offsets fit into one; one that is too large alone is a group all the same."""
    config = replace(COMPACT, segment_bytes=100, segment_index_bytes=50)

    def bases(sized):
        return [[segment.base_offset for segment in group] for group in group_segments(sized, config)]

    assert bases([(s, 1) for s in segments(60, 40, 1, 200, 50)]) == [[0, 10], [20], [30], [40]]
    assert bases([(s, 25) for s in segments(1, 1, 1)]) == [[0, 10], [20]]
    far = [CleanableSegment(0, 10, 1, -1, -1), CleanableSegment(10, 2**31, 1, -1, -1)]
    assert bases([(s, 1) for s in far]) == [[0], [10]]
