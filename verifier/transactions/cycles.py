"""Cycles in the graph of transactions, where an edge means that one transaction precedes another. Pure.

Owns the edges of the graph. Does not own the search for cycles (``verifier.operations.search``). A ``wr`` edge leads
from a transaction that wrote a value to one that took it as its input. A ``ww`` edge connects two transactions that
wrote neighboring values of a partition. Only the values of transactions that must have happened count there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from verifier.transactions.client_rows import ABORTED, COMMITTED, UNKNOWN, ClientEvidence
from verifier.transactions.state_records import TopicPartition


class Edge(NamedTuple):
    """``before`` precedes ``after``; both are numbers of transactions in the evidence. ``kind`` is ``wr`` or ``ww``.

    ``after`` read (``wr``) or wrote (``ww``) the value at ``offset`` of ``place``. ``is_backwards``: ``after`` had been
    committed before ``before`` began.
    """

    kind: str
    before: int
    after: int
    place: TopicPartition
    offset: int
    is_backwards: bool = False


class TransactionCycle(NamedTuple):
    """A shortest cycle in a component of ``size`` transactions. It starts at its transaction with the lowest number."""

    edges: tuple[Edge, ...]
    size: int


def read_edges(evidence: ClientEvidence) -> list[Edge]:
    """All ``wr`` edges between transactions that may be committed: one edge per pair of transactions."""
    found: dict[tuple[int, int], Edge] = {}
    for number, transaction in enumerate(evidence.transactions):
        for polled in transaction.read if transaction.outcome != ABORTED else ():
            for first, _, writer in evidence.writers(polled):
                if writer != number and evidence.transactions[writer].outcome != ABORTED:
                    edge = Edge("wr", writer, number, polled.place, polled.offset_of(first))
                    found.setdefault((writer, number), edge)
    return list(found.values())


def write_edges(evidence: ClientEvidence) -> list[Edge]:
    """All ``ww`` edges between transactions that must have happened: one edge per pair of transactions.

    A transaction must have happened if it is committed, or if its outcome is unknown and a reader received part of it.
    """
    read = {writer for polled in evidence.polled for _, _, writer in evidence.writers(polled)}
    orders: dict[TopicPartition, list[tuple[int, int]]] = defaultdict(list)
    for number, transaction in enumerate(evidence.transactions):
        if transaction.outcome == COMMITTED or (transaction.outcome == UNKNOWN and number in read):
            for sent in transaction.sent:
                if sent.first_offset >= 0:
                    orders[sent.place].append((sent.first_offset, number))
    found: dict[tuple[int, int], Edge] = {}
    for place, order in sorted(orders.items()):
        order.sort()
        for (_, before), (offset, after) in pairwise(order):
            if before != after:
                ended_ns = evidence.transactions[after].ended_ns
                is_backwards = 0 <= ended_ns < evidence.transactions[before].begin_ns
                edge = Edge("ww", before, after, place, offset, is_backwards)
                if is_backwards or (before, after) not in found:
                    found[before, after] = edge
    return list(found.values())


def cycles(count: int, edges: Sequence[Edge], through: Sequence[Edge] | None = None) -> Iterator[TransactionCycle]:
    """The shortest cycle of each component of the graph of ``count`` transactions.

    If ``through`` is given, only components with one of these edges count, and the cycle contains one of them.
    """
    if not edges:
        return
    # its libraries take longer to load than a run without transactions takes to judge
    from verifier.operations.search import components

    source = np.array([edge.before for edge in edges], dtype=np.int64)
    target = np.array([edge.after for edge in edges], dtype=np.int64)
    labels, sizes = components(count, source, target)
    by_label: dict[int, list[Edge]] = defaultdict(list)
    for edge in edges:
        label = int(labels[edge.before])
        if label == labels[edge.after] and sizes[label] > 1:
            by_label[label].append(edge)
    wanted = None if through is None else {(edge.before, edge.after) for edge in through}
    for label in sorted(by_label):
        own = by_label[label]
        chosen = [edge for edge in own if wanted is None or (edge.before, edge.after) in wanted]
        if chosen:
            yield _shortest(own, None if wanted is None else chosen)


def of_cycle(evidence: ClientEvidence, cycle: TransactionCycle) -> dict[str, Any]:
    """The ``detail`` of an anomaly about this cycle."""
    return {
        "size": cycle.size,
        "steps": [
            {
                "edge": edge.kind,
                "from": str(evidence.transactions[edge.before]),
                "to": str(evidence.transactions[edge.after]),
                "place": f"{edge.place[0]}-{edge.place[1]}",
                "offset": edge.offset,
                "is_backwards": edge.is_backwards,
            }
            for edge in cycle.edges
        ],
    }


def _shortest(edges: Sequence[Edge], through: Sequence[Edge] | None) -> TransactionCycle:
    """The shortest cycle of one component with these edges."""
    from verifier.operations.search import Component

    members = sorted({edge.before for edge in edges})
    number = {member: at for at, member in enumerate(members)}

    def ends(some: Sequence[Edge]) -> tuple[np.ndarray, np.ndarray]:
        before, after = (
            [number[each] for each in column] for column in zip(*(edge[1:3] for edge in some), strict=True)
        )
        return np.array(before, dtype=np.int64), np.array(after, dtype=np.int64)

    graph = Component(len(members), *ends(edges))
    found = graph.shortest() if through is None else graph.shortest(*ends(through))
    circle = [members[vertex] for vertex in found.vertices]
    start = circle.index(min(circle))
    circle = circle[start:] + circle[:start]
    by_ends = {(edge.before, edge.after): edge for edge in edges}
    steps = [by_ends[before, after] for before, after in zip(circle, [*circle[1:], circle[0]], strict=True)]
    return TransactionCycle(tuple(steps), len(members))
