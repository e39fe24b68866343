"""What was added last is known again, what was added long ago is not, and memory does not grow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.broker.recent_batches import RecentBatches
from tests.support.effort import steps_of

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
    """These have the same lowest bits, and none is taken for another one."""
    recent = RecentBatches(1024)
    for each in range(0, 2000, 2):
        assert not recent.has(each << 32, add=True)
    assert all(recent.has(each << 32, add=False) == (each % 2 == 0) for each in range(2000))


def test_its_size_is_a_power_of_two() -> None:
    """Places are counted modulo its size."""
    with pytest.raises(ValueError, match="3 is no power of two"):
        RecentBatches(3)


def test_batches_that_begin_alike_have_places_of_their_own() -> None:
    """Their lowest bits are all the same; to look for one does not lead past the others."""
    recent = RecentBatches(4096)

    def add_all() -> None:
        for each in range(500):
            recent.has(1_700_000_000_000 + each << 32 | 0xC0FFEE, add=True)

    assert steps_of(add_all) < 500 * 200
