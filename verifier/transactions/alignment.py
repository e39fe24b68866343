"""Which marker belongs to which decision: the markers of a producer in one partition beside its decisions there. Pure.

Owns the matching. Nothing in a marker names its transaction: there are the producer, its epoch, and the order. So the
cheapest reading counts, of all that keep both orders. It costs nothing that the marker of an earlier decision is
there again and ends nothing: the coordinator sends one again until it is told that it was written, and a link may hold
it back. Nor that a decision that the coordinator had not completed has none.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from verifier.files.transactions import Ended
from verifier.transactions.decisions import Decision

#: A marker of the other kind costs less than a marker too many and another too few.
_MISSING, _STRAY, _OPPOSITE = 2, 2, 3


class Alignment(NamedTuple):
    """``outcomes`` are (decision, the marker that ends it or None) for each decision; ``strays`` belong to none."""

    outcomes: tuple[tuple[Decision, Ended | None], ...]
    strays: tuple[Ended, ...]

    @property
    def missing(self) -> list[Decision]:
        """Decisions that are complete, and have no marker."""
        return [decision for decision, marker in self.outcomes if marker is None and decision.is_complete]

    @property
    def opposite(self) -> list[tuple[Decision, Ended]]:
        """Decisions whose marker says the other."""
        return [(decision, marker) for decision, marker in self.outcomes if marker and marker.kind != decision.kind]

    @property
    def agrees(self) -> bool:
        return not (self.strays or self.missing or self.opposite)


#: How many markers and decisions were gone through.
_State = tuple[int, int]


def align(markers: Sequence[Ended], decisions: Sequence[Decision]) -> Alignment:
    """Both are of one producer and one partition, in their orders."""
    return _Matching(markers, decisions).cheapest()


class _Matching:
    """A search for the cheapest way from the first marker and decision behind the last ones."""

    def __init__(self, markers: Sequence[Ended], decisions: Sequence[Decision]) -> None:
        self._markers, self._decisions = markers, decisions
        #: The first decision of each epoch and kind.
        self._first: dict[tuple[int, int], int] = {}
        for number, decision in enumerate(decisions):
            self._first.setdefault((decision.producer_epoch, decision.kind), number)

    def __repr__(self) -> str:
        return f"_Matching({len(self._markers)} markers, {len(self._decisions)} decisions)"

    def cheapest(self) -> Alignment:
        begin, end = (0, 0), (len(self._markers), len(self._decisions))
        origin: dict[_State, _State] = {}
        costs = {begin: 0}
        waiting = [(0, 0, begin)]
        while waiting:
            cost, _, state = heapq.heappop(waiting)
            if state == end:
                break
            if cost > costs[state]:
                continue
            for more, after in self._steps(*state):
                if after not in costs or cost + more < costs[after]:
                    costs[after], origin[after] = cost + more, state
                    # of equal cost, what has come furthest first
                    heapq.heappush(waiting, (cost + more, -sum(after), after))
        return self._told(origin, end)

    def _steps(self, at: int, number: int) -> Iterator[tuple[int, _State]]:
        """What may come next, with its cost."""
        marker = self._markers[at] if at < len(self._markers) else None
        decision = self._decisions[number] if number < len(self._decisions) else None
        if marker is not None and decision is not None and marker.producer_epoch == decision.producer_epoch:
            yield 0 if marker.kind == decision.kind else _OPPOSITE, (at + 1, number + 1)
        if marker is not None:
            yield 0 if self._is_again(marker, number) else _STRAY, (at + 1, number)
        if decision is not None:
            yield _MISSING if decision.is_complete else 0, (at, number + 1)

    def _is_again(self, marker: Ended, number: int) -> bool:
        """Whether a marker ends nothing, and one of the decisions before ``number`` has such a marker."""
        first = self._first.get((marker.producer_epoch, marker.kind))
        return marker.first_offset < 0 and first is not None and first < number

    def _told(self, origin: Mapping[_State, _State], state: _State) -> Alignment:
        outcomes: list[tuple[Decision, Ended | None]] = []
        strays: list[Ended] = []
        while state in origin:
            before = at, number = origin[state]
            if state[1] > number:
                outcomes.append((self._decisions[number], self._markers[at] if state[0] > at else None))
            elif not self._is_again(self._markers[at], number):
                strays.append(self._markers[at])
            state = before
        return Alignment(tuple(reversed(outcomes)), tuple(reversed(strays)))
