"""Sets as ranges agree with sets number by number, in whatever portions they come."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier import ranges as module
from verifier.ranges import Coverage, Ranges, joined, ranges, without

Rows = list[tuple[int, int, int]]

BELOW = 30
ROWS = st.lists(
    st.tuples(st.integers(-2, 2), st.integers(-2, BELOW), st.integers(0, 8)).map(lambda r: (r[0], r[1], r[1] + r[2])),
    max_size=12,
)


def of(rows: Rows) -> Ranges:
    return ranges(*zip(*rows, strict=True)) if rows else ranges()


def counted(rows: Rows) -> Counter[tuple[int, int]]:
    return Counter((key, number) for key, first, last in rows for number in range(first, last + 1))


def fewest(numbers: set[tuple[int, int]]) -> Rows:
    """The fewest ranges, in order."""
    found: Rows = []
    for key, number in sorted(numbers):
        if found and found[-1][0] == key and found[-1][2] == number - 1:
            found[-1] = key, found[-1][1], number
        else:
            found.append((key, number, number))
    return found


@given(ROWS, ROWS)
def test_sets_of_ranges_are_sets(one: Rows, other: Rows) -> None:
    """Union and difference, each as the fewest ranges in their order."""
    assert joined(of(one), of(other)).rows() == fewest(set(counted(one + other)))
    assert without(joined(of(one)), joined(of(other))).rows() == fewest(counted(one).keys() - counted(other).keys())


@given(ROWS, st.lists(st.integers(0, 12), max_size=4), st.integers(0, 5))
def test_a_coverage_takes_ranges_in_any_portions(rows: Rows, cuts: list[int], pending: int) -> None:
    """What came once and more than once does not depend on how it came, nor on when it was joined."""
    coverage = Coverage(pending)
    edges = [0, *sorted(cuts), len(rows)]
    for begin, end in pairwise(edges):
        coverage.add(of(rows[begin:end]))
    assert coverage.once.rows() == joined(of(rows)).rows()
    assert coverage.twice.rows() == fewest({each for each, count in counted(rows).items() if count > 1})


def test_what_follows_without_a_gap_takes_one_range() -> None:
    """Memory follows the gaps, not the ranges, and not how they were mixed."""
    coverage = Coverage(pending=100)
    for begin in (0, 50_000):
        for first in range(begin, begin + 50_000, 500):
            starts = list(range(first, first + 500, 5))
            coverage.add(of([(1 + at % 2, at, at + 9) for at in reversed(starts)]))
            assert len(coverage._once) < 100
    assert len(coverage.once) == 2


@pytest.mark.parametrize("last", [2**63 - 2, 2**63 - 1])
def test_the_largest_numbers_do_not_overflow(last: int) -> None:
    """A damaged history may say anything."""
    there = joined(ranges([1, 1], [0, last], [5, last]))
    assert there.rows() == [(1, 0, 5), (1, module._LARGEST, module._LARGEST)]
    assert without(there, ranges([1], [0], [5])).rows() == [(1, module._LARGEST, module._LARGEST)]
