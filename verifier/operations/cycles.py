"""Finds cycles of operations: G0 and G1c, each alone, with process order, and with real time.

Owns the edges of the graph and the choice of components. Does not own the definitions
(``verifier.operations.anomalies``) or the search for the shortest cycle (``verifier.operations.search``). There are
four kinds of edges between operations:

- ww: from the writer of a value to the writer of the next value in the log. Only with ``--ww-deps``.
- wr: from the writer of a value to an operation that read it.
- process: from an operation to a later one of the same process.
- realtime: from an operation to one that began after it had ended.

Failed operations have no edges; reading from them is G1a. SciPy finds the components of the whole graph. Real time goes
through one additional vertex per end of an operation, so that not every pair of operations needs an edge. All later
steps handle only the operations in components.

An example: two transactions of two processes that overlap in time::

    T1  send 1 7 -> [0 7], poll {2 [[0 8]]}         T2  send 2 8 -> [0 8], poll {1 [[0 7]]}

    edges       T1 -wr-> T2 (T2 read 7, which T1 sent); T2 -wr-> T1 (T1 read 8, which T2 sent)
    component   {T1, T2}, so both are suspects
    G1c         ww and wr edges: {T1, T2} is cyclic. One finding: the shortest cycle, T1 -wr-> T2 -wr-> T1, of length 2
    G1c-process, G1c-realtime   the same component is cyclic, but it contains a lesser cycle (G1c): no finding
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from verifier.operations.columns import starts_of_groups
from verifier.operations.findings import Cycle, CycleEdge, Findings, findings
from verifier.operations.model import FAIL, POLL, SEND, TXN, BoolArray, IntArray
from verifier.operations.pairing import NEVER, Operations
from verifier.operations.search import Component, FoundCycle, components
from verifier.operations.versions import Versions

WW, WR, PROCESS, REALTIME = range(4)
KINDS = ("ww", "wr", "process", "realtime")

#: Class -> the kinds of its edges.
CLASSES: dict[str, tuple[int, ...]] = {
    "G0": (WW,),
    "G1c": (WW, WR),
    "G0-process": (WW, PROCESS),
    "G1c-process": (WW, WR, PROCESS),
    "G0-realtime": (WW, REALTIME),
    "G1c-realtime": (WW, WR, REALTIME),
}
#: Class -> its lesser classes. A component counts for a class only if it contains no cycle of a lesser class.
LESSER: dict[str, tuple[str, ...]] = {
    "G0": (),
    "G1c": (),
    "G0-process": ("G0",),
    "G1c-process": ("G0", "G1c", "G0-process"),
    "G0-realtime": ("G0", "G0-process"),
    "G1c-realtime": ("G0", "G1c", "G0-process", "G1c-process", "G0-realtime"),
}
#: If a process has more operations than this in a component, only successive ones have a process edge.
MOST_PAIRED = 200


@dataclass(frozen=True, slots=True)
class _Edges:
    """Edges between operations, as columns of equal length.

    ``value`` is the value that was read (wr), or the later one of two neighbors in the log (ww), whose earlier one is
    ``before``. Both are -1 where they do not apply.
    """

    kind: IntArray
    source: IntArray
    target: IntArray
    value: IntArray
    before: IntArray

    def only(self, mask: BoolArray) -> _Edges:
        """The edges that a mask, or another NumPy index, selects."""
        return _Edges(*(column[mask] for column in (self.kind, self.source, self.target, self.value, self.before)))


def find(operations: Operations, versions: Versions, *, ww_deps: bool, transactions: bool) -> list[Findings]:
    """The findings of every class, one per component; ``Findings.cycles`` has the shortest cycle of each."""
    edges = _data_edges(operations, versions, ww_deps, transactions)
    process = _process_edges(operations)
    inside = _suspects(operations, edges)
    edges = edges.only(inside[edges.source] & inside[edges.target])
    process = process.only(inside[process.source] & inside[process.target])
    cyclic: dict[str, BoolArray] = {}
    found = []
    for name, kinds in CLASSES.items():
        chosen = edges.only(np.isin(edges.kind, kinds))
        if PROCESS in kinds:
            chosen = _joined(chosen, process)
        labels, sizes = _components(operations, chosen, inside, with_time=REALTIME in kinds)
        cyclic[name] = (labels >= 0) & (sizes[labels] > 1)
        hidden = np.zeros(len(operations), dtype=np.bool_)
        for lesser in LESSER[name]:
            hidden |= cyclic[lesser]
        found.append(_class(operations, name, kinds, chosen, labels, cyclic[name], hidden))
    return found


def _data_edges(operations: Operations, versions: Versions, ww_deps: bool, transactions: bool) -> _Edges:
    """All wr edges, and with ``ww_deps`` all ww edges."""
    writer = operations.writer[operations.read]
    reader, value = operations.read_by, operations.read
    alive = operations.type != FAIL
    if not transactions:
        # the micro-operations of an operation happen one by one, so the operation as a whole has no place in an order
        alive = alive & ~_mixed(operations)
    kept = (writer >= 0) & (writer != reader) & alive[writer] & alive[reader]
    kind = np.full(int(kept.sum()), WR, dtype=np.int64)
    read = _Edges(kind, writer[kept], reader[kept], value[kept], np.full(len(kind), -1, dtype=np.int64))
    if not ww_deps:
        return read
    later = np.flatnonzero((versions.slot_index > 0) & (versions.place[versions.slot_value] == versions.slot_index))
    value, before = versions.slot_value[later], versions.slot_value[later - 1]
    source, target = operations.writer[before], operations.writer[value]
    kept = (source >= 0) & (target >= 0) & (source != target) & alive[source] & alive[target]
    kind = np.full(int(kept.sum()), WW, dtype=np.int64)
    return _joined(_Edges(kind, source[kept], target[kept], value[kept], before[kept]), read)


def _mixed(operations: Operations) -> BoolArray:
    """A mask of the operations that both send and read."""
    both = np.zeros(len(operations), dtype=np.bool_)
    both[operations.read_by] = True
    sends = np.zeros(len(operations), dtype=np.bool_)
    sends[operations.sent_by] = True
    mask: BoolArray = both & sends
    return mask


def _process_edges(operations: Operations) -> _Edges:
    """From each operation that sends or polls to the next one of its process."""
    concerned = np.flatnonzero(np.isin(operations.f, [SEND, POLL, TXN]) & (operations.type != FAIL))
    order = concerned[np.argsort(operations.process[concerned], kind="stable")]
    follows = ~starts_of_groups([operations.process[order]])
    at = np.flatnonzero(follows)
    return _plain(PROCESS, order[at - 1], order[at])


def _plain(kind: int, source: IntArray, target: IntArray) -> _Edges:
    nothing = np.full(len(source), -1, dtype=np.int64)
    return _Edges(np.full(len(source), kind, dtype=np.int64), source, target, nothing, nothing)


def _joined(one: _Edges, other: _Edges) -> _Edges:
    return _Edges(*(np.concatenate([getattr(one, name), getattr(other, name)]) for name in _Edges.__slots__))


def _suspects(operations: Operations, edges: _Edges) -> BoolArray:
    """A mask of the operations in a component with several operations, by all edges. Every cycle is within these."""
    everything = np.ones(len(operations), dtype=np.bool_)
    if not len(edges.kind):
        return ~everything
    labels, sizes = _components(operations, edges, everything, with_time=True)
    mask: BoolArray = sizes[labels] > 1
    return mask


def _components(
    operations: Operations, edges: _Edges, inside: BoolArray, *, with_time: bool
) -> tuple[IntArray, IntArray]:
    """The component of each operation (-1 outside of ``inside``), and the number of operations in each component.

    ``with_time`` adds the realtime edges.
    """
    rows = np.flatnonzero(inside)
    number = np.full(len(operations), -1, dtype=np.int64)
    number[rows] = np.arange(len(rows))
    source, target, count = number[edges.source], number[edges.target], len(rows)
    if with_time and count:
        # operation -> its end -> the next end -> ... ; the last end before it began -> operation
        end, begin = operations.end[rows], operations.begin[rows]
        ended = np.flatnonzero(end != NEVER)
        ended = ended[np.argsort(end[ended])]
        places = count + np.arange(len(ended))
        last = np.searchsorted(end[ended], begin) - 1
        after = np.flatnonzero(last >= 0)
        source = np.concatenate([source, ended, places[:-1], places[last[after]]])
        target = np.concatenate([target, places, places[1:], after])
        count += len(ended)
    labels = np.full(len(operations), -1, dtype=np.int64)
    if not count:
        return labels, np.zeros(1, dtype=np.int64)
    found, _ = components(count, source, target)
    labels[rows] = found[: len(rows)]
    return labels, np.bincount(found[: len(rows)], minlength=int(found.max()) + 1)


def _class(
    operations: Operations, name: str, kinds: tuple[int, ...], edges: _Edges, labels: IntArray, cyclic: BoolArray,
    hidden: BoolArray,
) -> Findings:  # fmt: skip
    """The findings of one class: one for each cyclic component without a lesser cycle, by its first operation."""
    excluded = np.unique(labels[cyclic & hidden])
    members = np.flatnonzero(cyclic & ~np.isin(labels, excluded))
    if not len(members):
        return findings(name, members)
    order = members[np.argsort(labels[members], kind="stable")]
    starts = np.flatnonzero(starts_of_groups([labels[order]]))
    inner = edges.only(labels[edges.source] == labels[edges.target])
    inner = inner.only(cyclic[inner.source])
    by_label = np.argsort(labels[inner.source], kind="stable")
    inner = inner.only(by_label)  # type: ignore[arg-type]
    edge_labels = labels[inner.source]
    cycles = []
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
        label = labels[order[start]]
        first, last = np.searchsorted(edge_labels, [label, label + 1])
        own = inner.only(slice(first, last))  # type: ignore[arg-type]
        if name == "G1c" and not (own.kind == WR).any():
            continue
        cycles.append(_shortest(operations, kinds, np.sort(order[start:stop]), own))
    cycles.sort(key=lambda cycle: cycle.steps[0].before)
    first_of = np.array([cycle.steps[0].before for cycle in cycles], dtype=np.int64)
    named = [next((step for step in cycle.steps if step.value >= 0), cycle.steps[0]) for cycle in cycles]
    return findings(
        name,
        np.array([step.key for step in named], dtype=np.int64),
        value=np.array([step.value for step in named], dtype=np.int64),
        operation=first_of,
        delta=np.array([len(cycle.steps) for cycle in cycles], dtype=np.int64),
        cycles=cycles,
    )


def _shortest(operations: Operations, kinds: tuple[int, ...], members: IntArray, edges: _Edges) -> Cycle:
    """The shortest cycle of one component. Its steps begin with its operation that was invoked first."""
    if PROCESS in kinds:
        edges = _joined(edges.only(edges.kind != PROCESS), _paired(operations, members))
    source, target = np.searchsorted(members, edges.source), np.searchsorted(members, edges.target)
    graph = Component(len(members), source, target)
    if REALTIME in kinds:
        found = graph.shortest_back_in_time(operations.begin[members], operations.end[members])
    elif WR in kinds and WW in edges.kind and PROCESS not in kinds:
        reads = edges.kind == WR
        found = graph.shortest(source[reads], target[reads])
    else:
        found = graph.shortest()
    return Cycle(_steps(operations, members, edges, found, WR in kinds), len(members), found.is_shortest)


def _paired(operations: Operations, members: IntArray) -> _Edges:
    """Process edges between all pairs of operations of a process, since a step may skip operations in between."""
    order = members[np.argsort(operations.process[members], kind="stable")]
    bounds = [*np.flatnonzero(starts_of_groups([operations.process[order]])).tolist(), len(order)]
    sources, targets = [], []
    for start, stop in pairwise(bounds):
        own = order[start:stop]
        neighbors = np.arange(len(own) - 1)
        all_pairs = len(own) <= MOST_PAIRED
        one, other = np.triu_indices(len(own), 1) if all_pairs else (neighbors, neighbors + 1)
        sources.append(own[one])
        targets.append(own[other])
    return _plain(PROCESS, np.concatenate(sources), np.concatenate(targets))


def _steps(
    operations: Operations, members: IntArray, edges: _Edges, found: FoundCycle, prefer_reads: bool
) -> tuple[CycleEdge, ...]:
    """The edges along a cycle. A step without an edge in ``edges`` is a realtime edge."""
    circle = [int(members[vertex]) for vertex in found.vertices]
    start = circle.index(min(circle))
    circle = circle[start:] + circle[:start]
    steps = []
    for before, after in zip(circle, [*circle[1:], circle[0]], strict=True):
        rows = np.flatnonzero((edges.source == before) & (edges.target == after))
        if not len(rows):
            steps.append(CycleEdge(KINDS[REALTIME], before, after))
            continue
        # data edges explain more than process edges; a class about reads prefers wr edges
        rank = [WR, WW, PROCESS] if prefer_reads else [WW, WR, PROCESS]
        row = min(rows.tolist(), key=lambda each: rank.index(int(edges.kind[each])))
        value, preceding = int(edges.value[row]), int(edges.before[row])
        key = int(operations.key_of[value]) if value >= 0 else -1
        if edges.kind[row] == WW:
            steps.append(CycleEdge(KINDS[WW], before, after, key, preceding, value))
        else:
            steps.append(CycleEdge(KINDS[int(edges.kind[row])], before, after, key, value))
    return tuple(steps)
