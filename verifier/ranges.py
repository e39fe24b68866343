"""Sets of whole numbers by key, as ranges: sequences by stream, intervals of time. Pure arithmetic; judges nothing.

A set is kept as the fewest ranges that hold its numbers, so that what follows each other without a gap takes one range
however much there is of it. ``Coverage`` takes ranges in any order and in any portions, and knows which numbers came
more than once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

#: How many ranges a ``Coverage`` takes before it makes one set of them.
PENDING = 1 << 17
#: Ends are noted as the number behind them, which must be one.
_LARGEST = 2**63 - 2


class Ranges(NamedTuple):
    """Ranges ``first`` to ``last``, both included, of the set ``key``. Those of a set are sorted and do not touch."""

    key: Numbers
    first: Numbers
    last: Numbers

    def __len__(self) -> int:
        """How many ranges, not how many columns."""
        return int(self.key.size)

    def rows(self, most: int | None = None) -> list[tuple[int, int, int]]:
        """(key, first, last) of the first ``most`` ranges."""
        return list(zip(*(column[:most].tolist() for column in (self.key, self.first, self.last)), strict=True))


def ranges(key: Any = (), first: Any = (), last: Any = ()) -> Ranges:
    """Ranges as they come; each needs ``first <= last``."""
    columns = [np.asarray(column, dtype=np.int64) for column in (key, first, last)]
    return Ranges(columns[0], np.minimum(columns[1], _LARGEST), np.minimum(columns[2], _LARGEST))


def joined(*parts: Ranges) -> Ranges:
    """The numbers that are in any of these, as a set."""
    stops = _stops(parts, [1] * len(parts))
    return _ranges_where(stops, stops.total > 0)


def without(wanted: Ranges, other: Ranges) -> Ranges:
    """The numbers of one set that are not in the other."""
    # each set covers a number once at most, so what the two of them count tells them apart
    stops = _stops((wanted, other), (1, 2))
    return _ranges_where(stops, stops.total == 1)


class Coverage:
    """Collects ranges; ``once`` is the set of all numbers, ``twice`` of those that came in more than one range."""

    def __init__(self, pending: int = PENDING) -> None:
        self._pending = pending
        self._once = ranges()
        self._twice = ranges()
        self._waiting: list[Ranges] = []
        self._count = 0

    def add(self, more: Ranges) -> None:
        """Take these. What waits is joined when it is as large as the rest, so that each range is joined rarely."""
        self._waiting.append(more)
        self._count += len(more)
        if self._count > max(self._pending, len(self._once)):
            self._join()

    @property
    def once(self) -> Ranges:
        self._join()
        return self._once

    @property
    def twice(self) -> Ranges:
        self._join()
        return self._twice

    def _join(self) -> None:
        if not self._waiting:
            return
        parts = (self._once, *self._waiting)
        stops = _stops(parts, [1] * len(parts))
        self._once = _ranges_where(stops, stops.total > 0)
        self._twice = joined(self._twice, _ranges_where(stops, stops.total > 1))
        self._waiting, self._count = [], 0

    def __repr__(self) -> str:
        return f"Coverage({len(self._once)} ranges, {self._count} waiting)"


class _Stops(NamedTuple):
    """Where ranges begin, or have ended.

    From ``at`` to the next stop of the key, ``total`` is the sum of the weights of the ranges that hold the numbers.
    Behind the last stop of a key it is 0.
    """

    key: Numbers
    at: Numbers
    total: Numbers


def _stops(parts: Any, weights: Any) -> _Stops:
    sizes = [len(part) for part in parts]
    weight = np.repeat(np.array(weights, dtype=np.int64), sizes)
    key = np.concatenate([part.key for part in parts] * 2)
    at = np.concatenate([part.first for part in parts] + [part.last + 1 for part in parts])
    change = np.concatenate([weight, -weight])
    order = np.lexsort((at, key))
    key, at, total = key[order], at[order], np.cumsum(change[order])
    # of several changes in one place the last one has the sum
    ends = np.append((key[1:] != key[:-1]) | (at[1:] != at[:-1]), True)[: key.size]
    return _Stops(key[ends], at[ends], total[ends])


def _ranges_where(stops: _Stops, inside: NDArray[np.bool_]) -> Ranges:
    """The ranges from each stop where ``inside`` begins to the one where it ends."""
    before = np.append(False, inside[:-1])[: inside.size]
    begins, ends = np.flatnonzero(inside & ~before), np.flatnonzero(before & ~inside)
    return Ranges(stops.key[begins], stops.at[begins], stops.at[ends] - 1)
