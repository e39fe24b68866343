"""To which decisions a marker may belong, by all readings that contradict nothing. Pure.

``alignment`` finds one of the cheapest readings; where several cost nothing, its choice among them proves nothing.
Owns all of them: of markers that end nothing, one may be sent again and another one the first of its decision, which
leaves it open to which decision a marker after them belongs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from verifier.files.transactions import Ended
from verifier.transactions.decisions import Decision

#: Bit n of a number: the decisions before the nth were gone through.
_Bits = int


def possible_decisions(markers: Sequence[Ended], decisions: Sequence[Decision]) -> Mapping[int, frozenset[int]]:
    """Of one producer in one partition, in their orders. By the offset of each marker that ends something, the numbers
    of its decisions in ``decisions``; nothing if every reading contradicts something.
    """
    same, complete, first = _kinds(decisions)
    every = (1 << len(decisions) + 1) - 1
    undone = every >> 1 & ~complete

    def steps(marker: Ended) -> tuple[_Bits, _Bits]:
        """From where a marker may belong to the next decision, and from where it may repeat one."""
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
    """The decisions of each epoch and kind, those that are complete, and the first of each epoch and kind."""
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
    """Also where one comes to without a marker: past decisions that the coordinator had not completed."""
    more = bits
    while more:
        more = ((more & undone) << 1 if forward else more >> 1 & undone) & ~bits
        bits |= more
    return bits


def _numbers(bits: _Bits) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
