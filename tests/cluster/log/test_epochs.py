"""The leader epoch cache (Kafka's LeaderEpochFileCache), against a model that asks every offset for its epoch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.log.epochs import EpochEntry, LeaderEpochCache
from cluster.log.errors import CheckpointError, OutOfFiles


def cache_of(*pairs: tuple[int, int]) -> LeaderEpochCache:
    return LeaderEpochCache([EpochEntry(*pair) for pair in pairs])


def test_assign_takes_each_epoch_once():
    """The same epoch again, at or after its start, is no news; a new one is."""
    cache = LeaderEpochCache()
    assert cache.latest is None and cache.latest_number == -1
    assert cache.assign(0, 0)
    assert not cache.assign(0, 10)
    assert cache.assign(2, 10)
    assert cache.latest == 2 and cache.latest_number == 2
    assert cache.entries == ((0, 0), (2, 10))
    assert repr(cache) == "LeaderEpochCache(0@0 2@10)"


def test_a_new_entry_removes_what_conflicts():
    """Entries with an epoch or a start not below the new one's go: they were never committed."""
    cache = cache_of((1, 0), (3, 10), (5, 20))
    cache.assign(4, 15)
    assert cache.entries == ((1, 0), (3, 10), (4, 15))
    cache.assign(6, 10)
    assert cache.entries == ((1, 0), (6, 10))
    cache.assign(6, 4)
    assert cache.entries == ((1, 0), (6, 4))


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(-1, (-1, -1)), (0, (0, 5)), (1, (1, 5)), (2, (2, 20)), (3, (2, 20)), (4, (4, 30)), (6, (6, 77)), (7, (-1, -1))],
)
def test_end_offset_for(epoch, expected):
    """The epoch found and its end; undefined above the latest; below the first, the start of the first (KIP-279)."""
    assert cache_of((2, 5), (4, 20), (6, 30)).end_offset_for(epoch, 77) == expected
    assert LeaderEpochCache().end_offset_for(epoch, 77) == (-1, -1)


def test_truncation_from_both_ends():
    """From the end: entries at or above go. From the start: older ones collapse into the one that holds there."""
    cache = cache_of((1, 0), (3, 10), (5, 20))
    cache.truncate_from_end(20)
    assert cache.entries == ((1, 0), (3, 10))
    cache.truncate_from_start(5)
    assert cache.entries == ((1, 5), (3, 10))
    cache.truncate_from_start(10)
    assert cache.entries == ((3, 10),)
    cache.truncate_from_start(10)
    cache.truncate_from_start(40)
    assert cache.entries == ((3, 40),)
    cache.clear()
    assert cache.entries == () and cache.latest_number == -1
    cache.truncate_from_start(3)


def test_text_is_kafkas():
    """``0``, the count, ``epoch startOffset`` lines."""
    cache = cache_of((1, 0), (3, 10))
    assert cache.to_text() == "0\n2\n1 0\n3 10\n"
    assert LeaderEpochCache.from_text(cache.to_text()).entries == cache.entries
    assert LeaderEpochCache.from_text("").entries == ()
    with pytest.raises(CheckpointError):
        LeaderEpochCache.from_text("0\n1\n1 0\n3 10\n")


def test_every_change_is_told_once():
    """``on_change`` hears of changes alone."""
    told = []
    cache = LeaderEpochCache(on_change=lambda changed: told.append(changed.to_text()))
    cache.assign(0, 0)
    cache.assign(0, 5)
    cache.truncate_from_end(5)
    cache.truncate_from_end(0)
    cache.clear()
    assert told == ["0\n1\n0 0\n", "0\n0\n"]


def test_negative_values_are_a_mistake_of_the_caller():
    """An epoch or offset below 0 is refused."""
    with pytest.raises(ValueError, match="epoch -1"):
        LeaderEpochCache().assign(-1, 0)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=8), st.integers(-1, 30))
def test_against_a_list_of_epochs(steps, asked):
    """The oracle is the epoch of each offset, in a plain list."""
    cache = LeaderEpochCache()
    log: list[int] = []
    epoch = 0
    for rise, records in steps:
        epoch += rise
        cache.assign(epoch, len(log))
        log += [epoch] * records
    for offset, expected in enumerate(log):
        assert cache.epoch_for_offset(offset) == expected
    found, end = cache.end_offset_for(asked, len(log))
    if asked < 0 or asked > max(log):
        assert (found, end) == (-1, -1)
    elif asked < min(log):
        assert (found, end) == (asked, 0)
    else:
        assert found == max(value for value in log if value <= asked)
        assert end == sum(value <= asked for value in log)
    cut = min(max(asked, 0), len(log))
    cache.truncate_from_end(cut)
    assert [cache.epoch_for_offset(offset) for offset in range(cut)] == log[:cut]
    assert cache.latest == (log[cut - 1] if cut else None)


def test_what_cannot_be_written_is_not_known() -> None:
    """Too many files may be open: the next batch tries it again."""
    refused = [True]

    def write(cache: LeaderEpochCache) -> None:
        if refused.pop():
            raise OutOfFiles("for a moment")

    cache = LeaderEpochCache([EpochEntry(1, 0), EpochEntry(2, 5)], write)
    with pytest.raises(OutOfFiles):
        cache.assign(3, 4)
    assert (cache.entries, cache.latest_number) == ((EpochEntry(1, 0), EpochEntry(2, 5)), 2)
    refused.append(False)
    assert cache.assign(3, 4)
    assert (cache.entries, cache.latest_number) == ((EpochEntry(1, 0), EpochEntry(3, 4)), 3)
