"""Matches the markers of a producer in one partition with the producer's decisions for that partition. Pure.

Owns the matching, and finds one match of the lowest cost; ``verifier.transactions.readings`` finds all matches without
a contradiction. A marker does not name its transaction. It has only the producer's id and epoch, and its place in the
log. So every match that keeps both orders is possible, and each contradiction in it adds to its cost. Two things cost
nothing. A marker that ends nothing may repeat an earlier decision, because a coordinator sends a marker until the
broker confirms it, and a slow link can delay it. And a decision that the coordinator did not complete needs no marker.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from verifier.files.transactions import Ended
from verifier.transactions.decisions import Decision

#: Costs. A marker that contradicts its decision costs less than a stray marker and a missing one together.
_MISSING, _STRAY, _OPPOSITE = 2, 2, 3


class Alignment(NamedTuple):
    """A match of markers with decisions.

    ``outcomes`` has each decision with its marker, or None. ``strays`` are the markers that belong to no decision.
    """

    outcomes: tuple[tuple[Decision, Ended | None], ...]
    strays: tuple[Ended, ...]

    @property
    def missing(self) -> list[Decision]:
        """Completed decisions without a marker."""
        return [decision for decision, marker in self.outcomes if marker is None and decision.is_complete]

    @property
    def opposite(self) -> list[tuple[Decision, Ended]]:
        """Decisions with a marker of the opposite kind: COMMIT for ABORT, or ABORT for COMMIT."""
        return [(decision, marker) for decision, marker in self.outcomes if marker and marker.kind != decision.kind]

    @property
    def agrees(self) -> bool:
        """Whether the markers and decisions contradict each other nowhere."""
        return not (self.strays or self.missing or self.opposite)


#: A state of the search: how many markers, and how many decisions, are already matched or skipped.
_State = tuple[int, int]


def align(markers: Sequence[Ended], decisions: Sequence[Decision]) -> Alignment:
    """The cheapest match of one producer's markers in a partition, by offset, with its decisions there, in order."""
    return _Matching(markers, decisions).cheapest()


class _Matching:
    """Dijkstra's search over the states, from (0, 0) to the end of both sequences."""

    def __init__(self, markers: Sequence[Ended], decisions: Sequence[Decision]) -> None:
        self._markers, self._decisions = markers, decisions
        #: (producer epoch, kind) -> the number of the first such decision.
        self._first: dict[tuple[int, int], int] = {}
        for number, decision in enumerate(decisions):
            self._first.setdefault((decision.producer_epoch, decision.kind), number)

    def __repr__(self) -> str:
        return f"_Matching({len(self._markers)} markers, {len(self._decisions)} decisions)"

    def cheapest(self) -> Alignment:
        """The match of the lowest cost."""
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
                    # among states of equal cost, the furthest comes first
                    heapq.heappush(waiting, (cost + more, -sum(after), after))
        return self._alignment(origin, end)

    def _steps(self, at: int, number: int) -> Iterator[tuple[int, _State]]:
        """The next states after ``at`` markers and ``number`` decisions, each with the cost of the step."""
        marker = self._markers[at] if at < len(self._markers) else None
        decision = self._decisions[number] if number < len(self._decisions) else None
        if marker is not None and decision is not None and marker.producer_epoch == decision.producer_epoch:
            yield 0 if marker.kind == decision.kind else _OPPOSITE, (at + 1, number + 1)
        if marker is not None:
            yield 0 if self._is_repeated(marker, number) else _STRAY, (at + 1, number)
        if decision is not None:
            yield _MISSING if decision.is_complete else 0, (at, number + 1)

    def _is_repeated(self, marker: Ended, number: int) -> bool:
        """Whether a marker ends nothing and may repeat the marker of a decision before ``number``."""
        first = self._first.get((marker.producer_epoch, marker.kind))
        return marker.first_offset < 0 and first is not None and first < number

    def _alignment(self, origin: Mapping[_State, _State], state: _State) -> Alignment:
        """The match along the cheapest path to ``state``; ``origin`` maps each state to the one before it."""
        outcomes: list[tuple[Decision, Ended | None]] = []
        strays: list[Ended] = []
        while state in origin:
            before = at, number = origin[state]
            if state[1] > number:
                outcomes.append((self._decisions[number], self._markers[at] if state[0] > at else None))
            elif not self._is_repeated(self._markers[at], number):
                strays.append(self._markers[at])
            state = before
        return Alignment(tuple(reversed(outcomes)), tuple(reversed(strays)))
