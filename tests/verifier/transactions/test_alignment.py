"""Markers beside decisions: the matching keeps both orders, and no other one is cheaper."""

from __future__ import annotations

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from verifier.files.transactions import Ended
from verifier.segments.markers import ABORT, COMMIT
from verifier.transactions.alignment import Alignment, align
from verifier.transactions.decisions import Decision

MISSING, STRAY, OPPOSITE = 2, 2, 3
#: (kind, epoch, whether it ends records), and (kind, epoch, whether the coordinator completed it).
Told = tuple[int, int, bool]

TOLD = st.lists(st.tuples(st.sampled_from([ABORT, COMMIT]), st.integers(0, 1), st.booleans()), max_size=7)


def ended(told: list[Told]) -> list[Ended]:
    return [
        Ended(7, epoch, kind, at if holds else -1, at, 0, at + 1, epoch) for at, (kind, epoch, holds) in enumerate(told)
    ]


def decided(told: list[Told]) -> list[Decision]:
    return [
        Decision("x", number, 7, epoch, kind, frozenset({("t", 0)}), complete, 0, number)
        for number, (kind, epoch, complete) in enumerate(told)
    ]


def cost_of(found: Alignment) -> int:
    return MISSING * len(found.missing) + STRAY * len(found.strays) + OPPOSITE * len(found.opposite)


def cheapest(markers: list[Told], decisions: list[Told]) -> int:
    """By trying everything."""

    @cache
    def cost(at: int, number: int) -> int:
        ways = []
        if at < len(markers) and number < len(decisions) and markers[at][1] == decisions[number][1]:
            ways.append((0 if markers[at][0] == decisions[number][0] else OPPOSITE) + cost(at + 1, number + 1))
        if at < len(markers):
            again = not markers[at][2] and markers[at][:2] in [each[:2] for each in decisions[:number]]
            ways.append((0 if again else STRAY) + cost(at + 1, number))
        if number < len(decisions):
            ways.append((MISSING if decisions[number][2] else 0) + cost(at, number + 1))
        return min(ways, default=0)

    return cost(0, 0)


@given(TOLD, TOLD)
def test_no_matching_is_cheaper(markers: list[Told], decisions: list[Told]) -> None:
    """Every decision has its outcome, markers keep their order, and the cost is the least of all."""
    given_markers, given_decisions = ended(markers), decided(decisions)
    found = align(given_markers, given_decisions)
    assert [decision for decision, _ in found.outcomes] == given_decisions
    used = [marker.marker_offset for _, marker in found.outcomes if marker is not None]
    assert used == sorted(set(used))
    assert not {each.marker_offset for each in found.strays} & set(used)
    assert all(
        marker is None or marker.producer_epoch == decision.producer_epoch for decision, marker in found.outcomes
    )
    assert cost_of(found) == cheapest(markers, decisions)
    assert found.agrees == (cost_of(found) == 0)


def test_a_long_history_is_matched_at_once() -> None:
    """Thousands of transactions of which two markers are missing and one is wrong."""
    told: list[Told] = [(number % 2, 0, True) for number in range(4_000)]
    markers = ended(told)
    markers[2_000] = markers[2_000]._replace(kind=1 - markers[2_000].kind)
    del markers[3_000], markers[1_000]
    found = align(markers, decided(told))
    assert [decision.number for decision in found.missing] == [1_000, 3_000]
    assert [decision.number for decision, _ in found.opposite] == [2_000]
    assert found.strays == ()
