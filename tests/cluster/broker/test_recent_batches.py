"""What was added last is known again, what was added long ago is not, and memory does not grow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.broker.recent_batches import RecentBatches

#: Few enough values that they come again, and some that differ only where a table does not look.
FINGERPRINTS = st.one_of(st.integers(0, 30), st.integers(0, 2**96), st.integers(0, 30).map(lambda each: each << 60))


@given(st.lists(FINGERPRINTS, max_size=100), st.sampled_from([1, 2, 8, 16]))
def test_it_is_known_exactly_while_it_is_recent(added: list[int], least: int) -> None:
    """Two generations of ``least`` values each, the older of which goes when the newer is full."""
    recent = RecentBatches(least)
    newer: set[int] = set()
    older: set[int] = set()

    def word(fingerprint: int) -> int:
        return fingerprint % 2**64 or 1

    for each in added:
        assert recent.has(each, add=True) == (word(each) in newer | older)
        newer.add(word(each))
        if len(newer) == least:
            older, newer = newer, set()
        assert all(recent.has(other, add=False) == (word(other) in newer | older) for other in added)


def test_neighbors_and_zero_are_told_apart() -> None:
    """All of these begin at the same place of the table, and none is taken for another one."""
    recent = RecentBatches(1024)
    for each in range(0, 2000, 2):
        assert not recent.has(each << 32, add=True)
    assert all(recent.has(each << 32, add=False) == (each % 2 == 0) for each in range(2000))


def test_its_size_is_a_power_of_two() -> None:
    """A place is chosen by the lowest bits."""
    with pytest.raises(ValueError, match="3 is no power of two"):
        RecentBatches(3)
