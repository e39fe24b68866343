"""The two indexes: Kafka's bytes, lookups against a list, truncation and files that follow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.log.errors import CheckpointError
from cluster.log.index import OffsetIndex, TimeIndex
from cluster.seams.memory_storage import MemoryStorage

GAPS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 99)), max_size=30)


def test_bytes_of_the_offset_index():
    """8 bytes an entry: offset - base and position, big-endian (Kafka's OffsetIndex)."""
    storage = MemoryStorage()
    index = OffsetIndex(100, 1024)
    index.append(105, 4097)
    index.append(2**31 + 99, 2**31 - 1)
    index.flush(storage, "i")
    assert storage.read("i").hex() == "0000000500001001" + "7fffffff7fffffff"
    assert OffsetIndex.parse(storage.read("i"), 100) == list(index) == [(105, 4097), (2**31 + 99, 2**31 - 1)]


def test_bytes_of_the_time_index():
    """12 bytes an entry: timestamp and offset - base, big-endian."""
    storage = MemoryStorage()
    index = TimeIndex(100, 1024)
    index.maybe_append(0x18BCFE56800, 105)
    index.flush(storage, "i")
    assert storage.read("i").hex() == "0000018bcfe56800" + "00000005"
    assert TimeIndex.parse(storage.read("i"), 100) == list(index)


def test_time_entries_ascend():
    """An entry is added only if it is newer than the last; batches without timestamps have none."""
    index = TimeIndex(0, 1024)
    for timestamp, offset in [(-1, 0), (10, 1), (10, 2), (9, 3), (11, 4)]:
        index.maybe_append(timestamp, offset)
    assert list(index) == [(10, 1), (11, 4)]
    assert index.last == (11, 4)
    assert TimeIndex(0, 1024).last is None


def test_a_full_index_takes_no_more():
    """segment.index.bytes, rounded down to whole entries; the time index keeps one free for the roll."""
    offsets = OffsetIndex(0, 23)
    times = TimeIndex(0, 40)
    for number in range(1, 5):
        assert times.is_full == (number > 2)
        assert offsets.is_full == (number > 2)
        offsets.append(number, number)
        times.maybe_append(number, number)
    assert len(offsets) == 2
    assert len(times) == 3
    assert repr(offsets) == "OffsetIndex(0, 2 entries, 2 pending)"
    assert repr(times) == "TimeIndex(0, 3 entries, 3 pending)"


@pytest.mark.parametrize("size", [1, 7, 9, 11, 13])
def test_a_torn_file_is_refused(size):
    """A length that is no multiple of the entry's size."""
    for parse in (OffsetIndex.parse, TimeIndex.parse):
        with pytest.raises(CheckpointError):
            parse(bytes(size), 0)


@given(GAPS, st.integers(0, 300), st.integers(0, 3000))
def test_offset_lookups_against_a_list(gaps, offset, position):
    """The greatest entry not above what is asked, else the segment's start."""
    index = OffsetIndex(50, 4096)
    entries = [(50, 0)]
    for offsets, size in gaps:
        entries.append((entries[-1][0] + offsets, entries[-1][1] + size))
        index.append(*entries[-1])
    asked = 50 + offset
    assert index.position_before_offset(asked) == max(at for last, at in entries if last <= asked)
    assert index.position_before(position) == max(at for _, at in entries if at <= position)


@given(GAPS, st.integers(0, 300))
def test_time_lookups_against_a_list(gaps, timestamp):
    """No entry before the returned offset is as new as what is asked."""
    index = TimeIndex(50, 4096)
    entries = [(0, 50)]
    for offsets, later in gaps:
        entries.append((entries[-1][0] + later, entries[-1][1] + offsets))
        index.maybe_append(*entries[-1])
    assert index.offset_before_timestamp(timestamp) == max(
        [offset for newest, offset in entries if newest < timestamp], default=50
    )


@given(st.lists(st.one_of(st.just("flush"), st.integers(1, 40), st.integers(-300, -1)), max_size=40))
def test_files_follow_appends_and_truncations(steps):
    """After a flush the files have exactly the entries in memory, however often the index was cut."""
    storage = MemoryStorage()
    offsets, times = OffsetIndex(0, 1 << 20), TimeIndex(0, 1 << 20)
    model: list[int] = []
    for step in [*steps, "flush"]:
        if step == "flush":
            offsets.flush(storage, "o")
            times.flush(storage, "t")
            assert offsets.pending == times.pending == 0
            assert OffsetIndex.parse(storage.read("o"), 0) == [(value, value) for value in model]
            assert TimeIndex.parse(storage.read("t"), 0) == [(value, value) for value in model]
        elif step > 0:
            model.append((model[-1] if model else 0) + step)
            offsets.append(model[-1], model[-1])
            times.maybe_append(model[-1], model[-1])
        else:
            model = [value for value in model if value < -step]
            offsets.truncate(-step)
            times.truncate(-step)
