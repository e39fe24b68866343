"""The checks of operation histories a second time: plain loops over plain operations, slow and obvious.

Shares nothing with ``verifier.operations`` but the meaning of names. Takes lines as dictionaries and returns, for each
check, the anomalies as tuples that name keys, values and lines.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

DATA = ("send", "poll", "txn")
Line = dict[str, Any]


@dataclass(eq=False)
class Op:
    """An invocation and what became of it. ``row`` is the line that tells most, ``begin`` and ``end`` are lines."""

    process: Any
    f: str
    begin: int
    end: float
    type: str
    row: int
    value: Any
    sends: list[tuple[Any, Any, int | None]] = field(default_factory=list)
    reads: list[tuple[Any, Any, int | None]] = field(default_factory=list)
    rebalanced: set[Any] = field(default_factory=set)
    seeks: bool = False


def operations(lines: list[Line]) -> list[Op]:
    """The operations, in the order of their invocation. The lines must be well formed."""
    waiting: dict[Any, int] = {}
    completion: dict[int, int] = {}
    for number, line in enumerate(lines):
        if line["type"] == "invoke":
            waiting[line["process"]] = number
        else:
            completion[waiting.pop(line["process"])] = number
    found = []
    for number, line in enumerate(lines):
        if line["type"] != "invoke":
            continue
        end = completion.get(number)
        done = lines[end] if end is not None else line
        op = Op(
            line["process"], line["f"], number, float("inf") if end is None else end,
            "info" if end is None else done["type"], number if end is None else end, done["value"],
        )  # fmt: skip
        op.seeks = bool(line.get("seek-to-beginning?") or done.get("seek-to-beginning?"))
        if end is not None:
            op.rebalanced = {key for event in done.get("rebalance-log") or [] for key in event["keys"]}
        if op.f in DATA:
            told = {}
            for place, mop in enumerate(done["value"] or []) if end is not None else []:
                if mop[0] == "send":
                    sent = mop[2]
                    told[mop[1], sent[1] if isinstance(sent, list) else sent] = place
            entries = []
            for place, mop in enumerate(line["value"] or []):
                if mop[0] == "send" and (mop[1], mop[2]) not in told:
                    entries.append((place, (mop[1], mop[2], None)))
            for place, mop in enumerate(done["value"] or []) if end is not None else []:
                if mop[0] == "send":
                    sent = mop[2] if isinstance(mop[2], list) else [None, mop[2]]
                    entries.append((place, (mop[1], sent[1], sent[0])))
                elif len(mop) > 1 and mop[1]:
                    op.reads += [(key, value, offset) for key, pairs in mop[1].items() for offset, value in pairs]
            op.sends = [entry for _, entry in sorted(entries, key=lambda entry: entry[0])]
        found.append(op)
    return found


def find_all(lines: list[Line], *, ww_deps: bool, transactions: bool) -> dict[str, Counter[tuple[Any, ...]]]:
    """Check -> its anomalies; for cycles, one (number of steps,) for each component."""
    return _Oracle(operations(lines), ww_deps, transactions).find_all()


class _Oracle:
    def __init__(self, ops: list[Op], ww_deps: bool, transactions: bool) -> None:
        self.ops, self.ww_deps, self.transactions = ops, ww_deps, transactions
        self.writer = {(key, value): op for op in ops for key, value, _ in op.sends}
        self.ok_read = {(key, value) for op in ops if op.type == "ok" for key, value, _ in op.reads}
        self.slots: dict[Any, dict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
        for op in sorted(ops, key=lambda op: op.row):
            for key, value, offset in op.sends:
                if offset is not None and self.committed(op, key, value):
                    self._claim(key, offset, value)
            for key, value, offset in op.reads:
                if offset is not None:
                    self._claim(key, offset, value)
        self.order = {key: [slots[offset][0] for offset in sorted(slots)] for key, slots in self.slots.items()}
        self.found: dict[str, Counter[tuple[Any, ...]]] = defaultdict(Counter)

    def _claim(self, key: Any, offset: int, value: Any) -> None:
        if value not in self.slots[key][offset]:
            self.slots[key][offset].append(value)

    def committed(self, op: Op, key: Any, value: Any) -> bool:
        if op.type == "info":
            sent = [(k, v) for k, v, _ in op.sends] if self.transactions else [(key, value)]
            return any(each in self.ok_read for each in sent)
        return op.type == "ok"

    def place(self, key: Any, value: Any) -> int | None:
        """The last index at which the value is the one preferred."""
        places = [index for index, each in enumerate(self.order.get(key, [])) if each == value]
        return places[-1] if places else None

    def indices(self, key: Any, value: Any) -> list[int]:
        """All indices that anything puts the value at."""
        slots = self.slots.get(key, {})
        return [index for index, offset in enumerate(sorted(slots)) if value in slots[offset]]

    def delta(self, key: Any, before: Any, after: Any) -> int:
        one, other = self.place(key, before), self.place(key, after)
        return 1 if one is None or other is None else other - one

    def find_all(self) -> dict[str, Counter[tuple[Any, ...]]]:
        self._log()
        self._values()
        for op in self.ops:
            self._internal(op, op.sends, "send")
            self._internal(op, op.reads, "poll")
        self._polls()
        self._sends()
        for name, lengths in cycles(self).items():
            self.found[name] = Counter((length,) for length in lengths)
        return {name: found for name, found in self.found.items() if found}

    def _log(self) -> None:
        for key, slots in self.slots.items():
            stands = Counter(value for values in slots.values() for value in values)
            for offset, values in slots.items():
                if len(values) > 1:
                    self.found["inconsistent-offsets"][key, offset, values[0]] += 1
            for value, count in stands.items():
                if count > 1:
                    self.found["duplicate"][key, value, count] += 1

    def _values(self) -> None:
        for key, value in {(key, value) for op in self.ops for key, value, _ in op.reads} - set(self.writer):
            self.found["phantom"][key, value] += 1
        for op in self.ops:
            for key, value, _ in op.reads:
                writer = self.writer.get((key, value))
                if op.type == "ok" and writer is not None and writer.type == "fail":
                    self.found["G1a"][key, value, op.row] += 1
            sent = {(key, value) for key, value, _ in op.sends}
            for key in {key for key, value, _ in op.reads if (key, value) in sent}:
                self.found["precommitted-read"][key, op.row] += 1
            for key, value, _ in op.sends:
                if op.type == "ok" and (key, value) not in self.ok_read:
                    self.found["unseen"][key, value] += 1
                self._lost(op, key, value)

    def _lost(self, op: Op, key: Any, value: Any) -> None:
        firsts = [self.indices(key, v)[0] for k, v in self.ok_read if k == key and self.indices(key, v)]
        mine = self.indices(key, value)
        if (
            firsts
            and mine
            and mine[-1] <= max(firsts)
            and (key, value) not in self.ok_read
            and self.committed(op, key, value)
        ):
            self.found["lost-write"][key, value] += 1

    def _internal(self, op: Op, entries: list[tuple[Any, Any, int | None]], what: str) -> None:
        by_key: dict[Any, list[Any]] = defaultdict(list)
        for key, value, _ in entries:
            by_key[key].append(value)
        for key, values in by_key.items():
            if what == "poll" and key in op.rebalanced:
                continue
            for before, after in pairwise(values):
                delta = self.delta(key, before, after)
                if delta != 1:
                    name = f"int-{what}-skip" if delta > 1 else f"int-nonmonotonic-{what}"
                    self.found[name][key, before, after, op.row] += 1

    def _polls(self) -> None:
        last: dict[Any, dict[Any, Any]] = defaultdict(dict)
        for op in sorted(self.ops, key=lambda op: op.row):
            mine = last[op.process]
            if op.f in ("assign", "subscribe") and op.type in ("ok", "info"):
                kept = set() if op.seeks else set(op.value or [])
                last[op.process] = {key: value for key, value in mine.items() if key in kept}
            by_key: dict[Any, list[Any]] = defaultdict(list)
            for key, value, _ in op.reads:
                by_key[key].append(value)
            for key, values in by_key.items():
                if key in mine:
                    delta = self.delta(key, mine[key], values[0])
                    if delta != 1:
                        self.found["poll-skip" if delta > 1 else "nonmonotonic-poll"][
                            key, mine[key], values[0], op.row
                        ] += 1
            if op.type == "ok":
                mine |= {key: values[-1] for key, values in by_key.items()}

    def _sends(self) -> None:
        last: dict[Any, Any] = {}
        for op in sorted(self.ops, key=lambda op: op.row):
            if op.type == "fail":
                continue
            by_key: dict[Any, list[Any]] = defaultdict(list)
            for key, value, _ in op.sends:
                by_key[key].append(value)
            for key, values in by_key.items():
                before = last.get((op.process, key))
                if before is not None and self.delta(key, before, values[0]) < 1:
                    self.found["nonmonotonic-send"][key, before, values[0], op.row] += 1
                last[op.process, key] = values[-1]


Edge = tuple[int, int]
_CLASSES = {
    "G0": ("ww",), "G1c": ("ww", "wr"), "G0-process": ("ww", "process"), "G1c-process": ("ww", "wr", "process"),
    "G0-realtime": ("ww", "realtime"), "G1c-realtime": ("ww", "wr", "realtime"),
}  # fmt: skip
_LESSER = {
    "G0": (), "G1c": (), "G0-process": ("G0",), "G1c-process": ("G0", "G1c", "G0-process"),
    "G0-realtime": ("G0", "G0-process"), "G1c-realtime": ("G0", "G1c", "G0-process", "G1c-process", "G0-realtime"),
}  # fmt: skip


def cycles(oracle: _Oracle) -> dict[str, list[int]]:
    """For each class, the length of the shortest cycle of each component that counts."""
    ops = oracle.ops
    edges = _edges(oracle)
    parts: dict[str, list[frozenset[int]]] = {}
    found: dict[str, list[int]] = {}
    for name, kinds in _CLASSES.items():
        chosen = {kind: edges[kind] for kind in kinds}
        joined = {edge for each in chosen.values() for edge in each}
        parts[name] = _components(len(ops), joined)
        lengths = []
        for part in parts[name]:
            if any(lesser <= part for each in _LESSER[name] for lesser in parts[each]):
                continue
            required = chosen["wr"] if name == "G1c" else joined
            shortest = _shortest(part, joined, required)
            if shortest is not None:
                lengths.append(shortest)
        if lengths:
            found[name] = lengths
    return found


def _edges(oracle: _Oracle) -> dict[str, set[Edge]]:
    ops = oracle.ops
    number = {id(op): index for index, op in enumerate(ops)}
    data = [op for op in ops if op.f in DATA and op.type != "fail"]
    edges: dict[str, set[Edge]] = {kind: set() for kind in ("ww", "wr", "process", "realtime")}

    def link(kind: str, one: Op | None, other: Op | None) -> None:
        if one is None or other is None or one is other or "fail" in (one.type, other.type):
            return
        if kind in ("ww", "wr") and not oracle.transactions and any(op.sends and op.reads for op in (one, other)):
            return
        edges[kind].add((number[id(one)], number[id(other)]))

    for op in data:
        for key, value, _ in op.reads:
            link("wr", oracle.writer.get((key, value)), op)
    if oracle.ww_deps:
        for key, value in oracle.writer:
            place = oracle.place(key, value)
            if place:
                link("ww", oracle.writer.get((key, oracle.order[key][place - 1])), oracle.writer[key, value])
    for one in data:
        for other in data:
            if one.end < other.begin:
                edges["realtime"].add((number[id(one)], number[id(other)]))
                if one.process == other.process:
                    edges["process"].add((number[id(one)], number[id(other)]))
    return edges


def _components(count: int, edges: Iterable[Edge]) -> list[frozenset[int]]:
    """The components of two and more vertices."""
    following: dict[int, set[int]] = defaultdict(set)
    for one, other in edges:
        following[one].add(other)
    reach = {}
    for start in range(count):
        seen, waiting = set(), [start]
        while waiting:
            for each in following[waiting.pop()]:
                if each not in seen:
                    seen.add(each)
                    waiting.append(each)
        reach[start] = seen
    parts = {frozenset(b for b in reach[a] if a in reach[b]) for a in range(count) if a in reach[a]}
    return [part for part in parts if len(part) > 1]


def _shortest(part: frozenset[int], edges: set[Edge], required: set[Edge]) -> int | None:
    """The edges of the shortest cycle through a required edge."""
    following: dict[int, set[int]] = defaultdict(set)
    for one, other in edges:
        if one in part and other in part:
            following[one].add(other)
    best = None
    for tail, head in required:
        if tail not in part or head not in part:
            continue
        distance, waiting = {head: 0}, [head]
        for vertex in waiting:
            for each in following[vertex]:
                if each not in distance:
                    distance[each] = distance[vertex] + 1
                    waiting.append(each)
        if tail in distance and (best is None or distance[tail] + 1 < best):
            best = distance[tail] + 1
    return best
