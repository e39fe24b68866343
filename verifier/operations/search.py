"""Finds the shortest cycle in a strongly connected component. Owns the search; vertices are only numbers here. Pure.

A breadth-first search from the head of an edge finds the shortest cycle through that edge. Every cycle has an edge to a
smaller number, so only these edges need to be tried (or only the edges of a kind that the cycle must have). A few
searches of the whole component give a bound, and the other searches stop at that length. The search ends after
``BUDGET`` edges. The result is then the shortest cycle so far, and is marked as such.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from verifier.operations.model import IntArray

#: The number of searches without a bound, and the most edges that all bounded searches together examine.
WHOLE_SEARCHES = 40
BUDGET = 4_000_000


class FoundCycle(NamedTuple):
    """The vertices of a cycle in order, each once. ``is_shortest``: no shorter cycle exists."""

    vertices: tuple[int, ...]
    is_shortest: bool


def components(count: int, source: IntArray, target: IntArray) -> tuple[IntArray, IntArray]:
    """The strongly connected component of each of ``count`` vertices, and the size of each component."""
    weights = np.ones(len(source), dtype=np.int8)
    graph = csr_array((weights, (source.astype(np.int32), target.astype(np.int32))), shape=(count, count))
    _, labels = connected_components(graph, directed=True, connection="strong")
    labels = labels.astype(np.int64)
    return labels, np.bincount(labels)


class Component:
    """A strongly connected graph of ``count`` vertices, with edges from ``source`` to ``target``."""

    def __init__(self, count: int, source: IntArray, target: IntArray) -> None:
        self.count = count
        pairs = np.unique(source * count + target)
        self.source, self.target = pairs // count, pairs % count
        self._graph = csr_array(
            (np.ones(len(pairs), dtype=np.int8), (self.source.astype(np.int32), self.target.astype(np.int32))),
            shape=(count, count),
        )
        starts = np.searchsorted(self.source, np.arange(count + 1))
        self._starts = starts.tolist()
        self._targets = self.target.tolist()
        self._left = BUDGET

    def __repr__(self) -> str:
        return f"Component({self.count:,} vertices, {len(self.source):,} edges)"

    def shortest(self, source: IntArray | None = None, target: IntArray | None = None) -> FoundCycle:
        """The shortest cycle; with ``source`` and ``target``, the shortest through one of these edges."""
        if source is None or target is None:
            back = self.target < self.source
            source, target = self.source[back], self.target[back]
        reverse = np.isin(target * self.count + source, self.source * self.count + self.target)
        if reverse.any():
            at = int(np.flatnonzero(reverse)[0])
            return FoundCycle((int(source[at]), int(target[at])), True)
        order = np.argsort(np.abs(source - target), kind="stable")
        heads: dict[int, set[int]] = {}
        for head, tail in zip(target[order].tolist(), source[order].tolist(), strict=True):
            heads.setdefault(head, set()).add(tail)
        return self._search(list(heads), lambda head: heads[head].__contains__, least=3)

    def shortest_back_in_time(self, begin: IntArray, end: IntArray) -> FoundCycle:
        """The shortest cycle of edges and one realtime step: ``end`` of one vertex is before ``begin`` of the next.

        A shortest cycle never needs two realtime steps: one of them can always be left out, in any order of their four
        times.
        """
        direct = end[self.target] < begin[self.source]
        if direct.any():
            at = int(np.flatnonzero(direct)[0])
            return FoundCycle((int(self.source[at]), int(self.target[at])), True)
        ends, begins = end.tolist(), begin.tolist()
        # the vertex that began last has the most vertices that ended before it
        heads = np.argsort(-begin, kind="stable").tolist()
        return self._search(heads, lambda head: lambda vertex: ends[vertex] < begins[head], least=3)

    def _search(self, heads: list[int], wanted: Callable[[int], Callable[[int], bool]], least: int) -> FoundCycle:
        best: list[int] = []
        complete = True
        for number, head in enumerate(heads):
            if best and len(best) == least:
                break
            if number < WHOLE_SEARCHES or not best:
                path = self._whole(head, wanted(head))
            elif self._left <= 0:
                complete = False
                break
            else:
                path = self._bounded(head, wanted(head), len(best) - 1)
            if path and (not best or len(path) < len(best)):
                best = path
        return FoundCycle(tuple(best), complete)

    def _whole(self, head: int, is_wanted: Callable[[int], bool]) -> list[int]:
        """The vertices of the shortest path from ``head`` to a wanted vertex; empty if there is none."""
        order, before = breadth_first_order(self._graph, head, directed=True, return_predecessors=True)
        for vertex in order.tolist():
            if is_wanted(vertex):
                path = [vertex]
                while path[-1] != head:
                    path.append(int(before[path[-1]]))
                return path[::-1]
        return []

    def _bounded(self, head: int, is_wanted: Callable[[int], bool], most: int) -> list[int]:
        """The same, if the path has at most ``most`` vertices."""
        before = {head: head}
        frontier = [head]
        for _ in range(most - 1):
            reached = []
            for vertex in frontier:
                first, last = self._starts[vertex], self._starts[vertex + 1]
                self._left -= last - first
                for following in self._targets[first:last]:
                    if following not in before:
                        before[following] = vertex
                        if is_wanted(following):
                            path = [following]
                            while path[-1] != head:
                                path.append(before[path[-1]])
                            return path[::-1]
                        reached.append(following)
            if self._left <= 0:
                break
            frontier = reached
        return []
