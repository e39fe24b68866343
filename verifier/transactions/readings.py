"""Finds every decision to which a marker may belong, over all matches without a contradiction. Pure.

Owns the set of these matches. ``verifier.transactions.alignment`` returns one of the cheapest, and if several cost
nothing, its choice between them proves nothing. An example: of two markers that end nothing, either one may repeat an
earlier marker, and the other be the first of its decision. Then the next marker may belong to one of two decisions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from verifier.files.transactions import Ended
from verifier.transactions.decisions import Decision

#: A set of positions in the sequence of decisions: bit n means that the first n decisions are matched or skipped.
_Bits = int


def possible_decisions(markers: Sequence[Ended], decisions: Sequence[Decision]) -> Mapping[int, frozenset[int]]:
    """Offset of each marker that ends a transaction -> the numbers of the decisions to which it may belong.

    Both sequences are of one producer and one partition, in order. Empty if every match has a contradiction.
    """
    same, complete, first = _kinds(decisions)
    every = (1 << len(decisions) + 1) - 1
    undone = every >> 1 & ~complete

    def steps(marker: Ended) -> tuple[_Bits, _Bits]:
        """The positions from which a marker can belong to the next decision, and those where it can repeat one."""
        key = marker.producer_epoch, marker.kind
        repeats = marker.first_offset < 0 and key in first
        return same.get(key, 0), every & ~((2 << first[key]) - 1) if repeats else 0

    before = [_spread(1, undone, forward=True)]
    for marker in markers:
        belongs, repeats = steps(marker)
        before.append(_spread((before[-1] & belongs) << 1 | before[-1] & repeats, undone, forward=True))
    found: dict[int, frozenset[int]] = {}
    after = _spread(1 << len(decisions), undone, forward=False)
    for at in range(len(markers) - 1, -1, -1):
        marker, (belongs, repeats) = markers[at], steps(markers[at])
        if marker.first_offset >= 0:
            found[marker.marker_offset] = frozenset(_numbers(before[at] & belongs & after >> 1))
        after = _spread(after >> 1 & belongs | after & repeats, undone, forward=False)
    return found if after & 1 else {}


def _kinds(decisions: Sequence[Decision]) -> tuple[dict[tuple[int, int], _Bits], _Bits, dict[tuple[int, int], int]]:
    """By (epoch, kind): the decisions. Then the complete decisions; and by (epoch, kind), the first decision."""
    same: dict[tuple[int, int], _Bits] = {}
    first: dict[tuple[int, int], int] = {}
    complete = 0
    for number, decision in enumerate(decisions):
        key = decision.producer_epoch, decision.kind
        same[key] = same.get(key, 0) | 1 << number
        first.setdefault(key, number)
        complete |= decision.is_complete << number
    return same, complete, first


def _spread(bits: _Bits, undone: _Bits, *, forward: bool) -> _Bits:
    """Adds the positions that are reachable without a marker: past decisions that were not completed."""
    more = bits
    while more:
        more = ((more & undone) << 1 if forward else more >> 1 & undone) & ~bits
        bits |= more
    return bits


def _numbers(bits: _Bits) -> Iterator[int]:
    """The numbers of the bits that are set, ascending."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
