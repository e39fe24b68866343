"""Describes anomalies of operations in words and as plain data: operations, values and evidence. Owns the sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from verifier.evidence.how_many import how_many
from verifier.operations.findings import Cycle, CycleEdge, Findings
from verifier.operations.model import TYPE_NAMES
from verifier.operations.pairing import NEVER, Operations
from verifier.operations.versions import Versions

#: The most steps of a cycle that a sentence names; the detail has all of them.
MOST_STEPS = 12


class Narrator:
    """Describes the anomalies of one history; translates numbers of keys, values and operations into names."""

    def __init__(self, operations: Operations, versions: Versions) -> None:
        self._operations = operations
        self._versions = versions
        self._names = operations.history.names

    def __repr__(self) -> str:
        return f"Narrator({self._operations.history.name})"

    def key(self, key: int) -> int | str:
        return self._names.name(int(self._operations.keys[key]))

    def value(self, value: int) -> int | str:
        return self._names.name(int(self._operations.values[value]))

    def process(self, operation: int) -> int | str:
        return self._names.name(int(self._operations.process[operation]))

    def operation(self, operation: int) -> str:
        """``operation 17 (process 3)``."""
        return f"operation {self._operations.index(operation)} (process {self.process(operation)})"

    def operation_json(self, operation: int) -> dict[str, Any]:
        """An operation as plain data: where it is in the history, its times and its outcome."""
        operations, history = self._operations, self._operations.history
        begin, end = int(operations.begin[operation]), int(operations.end[operation])
        return {
            "index": operations.index(operation),
            "process": self.process(operation),
            "type": TYPE_NAMES[operations.type[operation]],
            "invoke_line": int(history.line_number[begin]),
            "complete_line": None if end == NEVER else int(history.line_number[end]),
            "invoke_time": _known(int(history.time[begin])),
            "complete_time": None if end == NEVER else _known(int(history.time[end])),
        }

    def detail(self, found: Findings, row: int) -> dict[str, Any]:
        """One anomaly as plain data."""
        detail: dict[str, Any] = {}
        if found.key[row] >= 0:
            detail["key"] = self.key(int(found.key[row]))
        for name, column in (("value", found.value), ("other_value", found.other)):
            if column[row] >= 0:
                detail[name] = self.value(int(column[row]))
        for name, column in (("operation", found.operation), ("earlier_operation", found.earlier)):
            if column[row] >= 0:
                detail[name] = self.operation_json(int(column[row]))
        if found.check.endswith(("-skip", "-poll", "-send")):
            detail["delta"] = int(found.delta[row])
            if found.delta[row] > 1:
                detail["skipped"] = [self.value(each) for each in self._skipped(found, row)]
        elif found.check == "duplicate":
            detail["copies"] = int(found.delta[row])
        if found.cycles:
            detail["cycle"] = self._cycle(found.cycles[row])
        return detail

    def sentence(self, found: Findings, row: int) -> str:
        """One anomaly in words."""
        if found.cycles:
            return self._circle(found.cycles[row])
        return _SENTENCES[found.check](self, found, row)

    def _skipped(self, found: Findings, row: int) -> list[int]:
        places, key = self._versions.place, int(found.key[row])
        return self._versions.between(key, int(places[found.other[row]]), int(places[found.value[row]]))

    def _cycle(self, cycle: Cycle) -> dict[str, Any]:
        return {
            "length": len(cycle.steps),
            "component": cycle.size,
            "is_shortest": cycle.is_shortest,
            "steps": [
                {
                    "edge": step.kind,
                    "from": self.operation_json(step.before),
                    "to": self.operation_json(step.after),
                    "text": self._step(step),
                }
                for step in cycle.steps
            ],
        }

    def _circle(self, cycle: Cycle) -> str:
        shown = "; ".join(self._step(step) for step in cycle.steps[:MOST_STEPS])
        more = f"; and {how_many(len(cycle.steps) - MOST_STEPS, 'more step')}" if len(cycle.steps) > MOST_STEPS else ""
        proof = "" if cycle.is_shortest else ", the shortest of those compared"
        return f"a cycle of {len(cycle.steps)} of {cycle.size:,} connected operations{proof}: {shown}{more}"

    def _step(self, step: CycleEdge) -> str:
        before, after = self.operation(step.before), self.operation(step.after)
        if step.kind == "wr":
            return f"{before} sent {self.value(step.value)} to key {self.key(step.key)}, which {after} read"
        if step.kind == "ww":
            return (
                f"{before} sent {self.value(step.value)} to key {self.key(step.key)}, right before "
                f"{self.value(step.next_value)} of {after}"
            )
        if step.kind == "process":
            return f"{after} comes later in the same process than {before}"
        return f"{before} had ended before {after} began"


def _known(time: int) -> int | None:
    return None if time < 0 else time


def _at(found: Findings, row: int) -> str:
    return f" at offset {found.offset[row]}" if found.offset[row] >= 0 else ""


def _own(n: Narrator, found: Findings, row: int) -> str:
    return f"key {n.key(int(found.key[row]))}: {n.value(int(found.value[row]))}"


def _phantom(n: Narrator, found: Findings, row: int) -> str:
    return (
        f"{_own(n, found, row)} was read{_at(found, row)} by {n.operation(int(found.operation[row]))}; nothing sent it"
    )


def _aborted_read(n: Narrator, found: Findings, row: int) -> str:
    reader, writer = n.operation(int(found.operation[row])), n.operation(int(found.earlier[row]))
    return f"{_own(n, found, row)} was read{_at(found, row)} by {reader}, and {writer}, which sent it, failed"


def _precommitted_read(n: Narrator, found: Findings, row: int) -> str:
    return f"{_own(n, found, row)} was sent and read{_at(found, row)} by {n.operation(int(found.operation[row]))}"


def _lost_write(n: Narrator, found: Findings, row: int) -> str:
    return (
        f"{_own(n, found, row)}, sent by {n.operation(int(found.operation[row]))}, is{_at(found, row)} and was not "
        f"read, although {n.value(int(found.other[row]))} was, {found.delta[row]} further"
    )


def _unseen(n: Narrator, found: Findings, row: int) -> str:
    sender = n.operation(int(found.operation[row]))
    return f"{_own(n, found, row)} was acknowledged{_at(found, row)} to {sender} and never read"


def _inconsistent(n: Narrator, found: Findings, row: int) -> str:
    return (
        f"key {n.key(int(found.key[row]))}: offset {found.offset[row]} holds {n.value(int(found.value[row]))} and "
        f"{n.value(int(found.other[row]))}{f' ({found.delta[row]} values in all)' if found.delta[row] > 2 else ''}"
    )


def _duplicate(n: Narrator, found: Findings, row: int) -> str:
    return f"{_own(n, found, row)} is at {found.delta[row]} offsets, first{_at(found, row)}"


def _order(n: Narrator, found: Findings, row: int) -> str:
    did = "polled" if found.check.endswith(("poll-skip", "poll")) else "sent"
    here, other = n.operation(int(found.operation[row])), n.value(int(found.other[row]))
    delta = int(found.delta[row])
    where = f"{delta - 1} in between" if delta > 1 else f"{-delta} back" if delta else "the same place"
    if found.earlier[row] < 0:
        return f"{_own(n, found, row)} was {did} by {here} right after {other}: {where}"
    return f"{_own(n, found, row)} was {did} by {here} after {other} of {n.operation(int(found.earlier[row]))}: {where}"


_SENTENCES: dict[str, Callable[[Narrator, Findings, int], str]] = {
    "phantom": _phantom,
    "G1a": _aborted_read,
    "precommitted-read": _precommitted_read,
    "lost-write": _lost_write,
    "unseen": _unseen,
    "inconsistent-offsets": _inconsistent,
    "duplicate": _duplicate,
    **dict.fromkeys(
        (
            "poll-skip", "nonmonotonic-poll", "int-poll-skip", "int-nonmonotonic-poll", "int-send-skip",
            "nonmonotonic-send", "int-nonmonotonic-send",
        ),
        _order,
    ),
}  # fmt: skip
