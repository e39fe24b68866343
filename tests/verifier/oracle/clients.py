"""The checks of transactions as clients saw them once more: value by value, every pair of rows, every path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from tests.verifier.oracle.model import Anomaly
from verifier.evidence.run_model import RunModel

Row = dict[str, Any]


@dataclass
class Transaction:
    """One transaction; ``sends`` are its rows, ``reads`` (partition, offset) -> value of its input."""

    rows: list[Row]
    sends: list[Row] = field(default_factory=list)
    reads: dict[tuple[Any, int], tuple[int, int]] = field(default_factory=dict)

    @property
    def ends(self) -> list[tuple[str, str]]:
        return [(row["f"], row["type"]) for row in self.rows if row["f"] in ("commit", "abort")]

    @property
    def committed(self) -> bool:
        return ("commit", "ok") in self.ends

    @property
    def aborted(self) -> bool:
        return bool(self.ends) and ("commit", "ok") not in self.ends and ("commit", "info") not in self.ends

    @property
    def producer(self) -> int:
        """Of the commit that succeeded; else of any row that begins or ends it."""
        ends = [row for row in self.rows if (row["f"], row["type"]) == ("commit", "ok")]
        ends = ends or [row for row in self.rows if row["f"] in ("begin", "commit", "abort")]
        return max((int(row["producer_id"]) for row in ends), default=-1)

    @property
    def stored(self) -> list[tuple[tuple[str, int], int]]:
        """Where each record is that was acknowledged."""
        sends = [send for send in self.sends if send["type"] == "ok" and send["first_offset"] >= 0]
        return [(place(send), offset) for send in sends for offset in values(send).values()]

    @property
    def begun(self) -> int:
        return min(int(row["invoke_ns"]) for row in self.rows)

    @property
    def asked(self) -> int | None:
        return min((int(row["invoke_ns"]) for row in self.rows if row["f"] == "commit"), default=None)

    @property
    def ended(self) -> int | None:
        done = [int(row["complete_ns"]) for row in self.rows if (row["f"], row["type"]) == ("commit", "ok")]
        return max(done, default=None)


class Circle(NamedTuple):
    """The shortest cycle of a component: its length, and where its first edge is, seen from its first transaction."""

    check: str
    length: int
    partition: int
    offset: int


def find_all(rows: list[Row]) -> Iterator[Anomaly]:
    """What the four checks must find."""
    found, polls = read(rows)
    yield from of_reads(found, polls)
    for circle in circles(found, polls):
        yield Anomaly(circle.check, None, circle.partition, None, None, circle.offset)


def read(rows: list[Row]) -> tuple[list[Transaction], list[Row]]:
    """All transactions, and the polls of sessions that read only what is committed."""
    isolated = {(row["process"], row["session"]) for row in rows if row["f"] in ("isolation", "member")}
    polls = [row for row in rows if row["f"] == "poll" and (row["process"], row["session"]) in isolated]
    polls = [row for row in polls if row["stream"] >= 0]
    of_transactions = [row for row in rows if row["f"] in ("begin", "send", "commit", "abort", "offsets")]
    keys = sorted({(row["process"], row["op"]) for row in of_transactions if row["op"] >= 0})
    return [transaction(rows, polls, *key) for key in keys], polls


def of_reads(found: list[Transaction], polls: list[Row]) -> Iterator[Anomaly]:
    for poll in polls:
        for each in found:
            for send in each.sends:
                shared = values(poll).keys() & values(send).keys()
                if shared:
                    offset = values(poll)[min(shared)]
                    if each.aborted:
                        yield Anomaly("G1a", None, poll["partition"], None, None, offset)
                    elif each.asked is not None and poll["complete_ns"] < each.asked:
                        yield Anomaly("precommitted-read", None, poll["partition"], None, None, offset)


def transaction(rows: list[Row], polls: list[Row], process: str, number: int) -> Transaction:
    own = [row for row in rows if (row["process"], row["op"]) == (process, number) and row["f"] != "poll"]
    sends = [row for row in own if row["f"] == "send" and row["type"] != "fail"]
    reads = {}
    for row in own:
        for offset in range(row["first_offset"], row["last_offset"] + 1) if row["f"] == "offsets" else ():
            for poll in polls:
                same = (poll["process"], place(poll)) == (process, place(row))
                for value, at in values(poll).items() if same and row["type"] != "fail" else ():
                    if at == offset:
                        reads[place(row), offset] = value
    return Transaction(own, sends, reads)


def place(row: Row) -> tuple[str, int]:
    return row["topic"], row["partition"]


def values(row: Row) -> dict[tuple[Any, int, int], int]:
    """(partition, stream, sequence) -> offset."""
    span = range(row["last_sequence"] - row["first_sequence"] + 1)
    return {(place(row), row["stream"], row["first_sequence"] + step): row["first_offset"] + step for step in span}


#: Edge -> the partition and offset of what shows it.
Edges = dict[tuple[int, int], tuple[int, int]]


def circles(found: list[Transaction], polls: list[Row]) -> Iterator[Circle]:
    many = range(len(found))
    wrote = {value: number for number in many for send in found[number].sends for value in values(send)}
    reads: Edges = {}
    for number in many:
        for (where, offset), value in found[number].reads.items():
            writer = wrote.get(value)
            if writer is not None and writer != number and not found[writer].aborted and not found[number].aborted:
                reads.setdefault((writer, number), (where[1], offset))
    yield from shortest("G1c", len(found), reads, {*reads})
    seen = {wrote[value] for poll in polls for value in values(poll) if value in wrote}
    happened = [n for n in many if found[n].committed or (not found[n].aborted and n in seen)]
    slots: dict[Any, dict[int, int]] = {}
    for number in happened:
        for send in found[number].sends:
            if send["type"] == "ok" and send["first_offset"] >= 0:
                slots.setdefault(place(send), {}).update(dict.fromkeys(values(send).values(), number))
    writes: Edges = {}
    backwards = set()
    for where, slot in sorted(slots.items()):
        for before, offset in pairwise(sorted(slot)):
            edge = slot[before], slot[offset]
            if edge[0] != edge[1]:
                writes.setdefault(edge, (where[1], offset))
                ended = found[edge[1]].ended
                if ended is not None and ended < found[edge[0]].begun:
                    backwards.add(edge)
    yield from shortest("G0", len(found), writes, backwards)


def shortest(check: str, count: int, edges: Edges, through: set[tuple[int, int]]) -> Iterator[Circle]:
    """For each component, its shortest cycle through one of these edges."""
    paths: dict[tuple[int, int], list[int]] = {edge: [*edge] for edge in edges}
    for via in range(count):
        for a in range(count):
            for b in range(count):
                first, second = paths.get((a, via)), paths.get((via, b))
                if first and second and len(first) + len(second) - 1 < len(paths.get((a, b), range(99))):
                    paths[a, b] = first + second[1:]
    best: dict[int, list[int]] = {}
    for a, b in sorted(through):
        if (b, a) in paths:
            component = min(c for c in range(count) if c == a or ((a, c) in paths and (c, a) in paths))
            circle = paths[b, a]
            if component not in best or len(circle) < len(best[component]):
                best[component] = circle
    for _, circle in sorted(best.items()):
        start = circle.index(min(circle))
        turned = circle[start:] + circle[:start]
        yield Circle(check, len(circle), *edges[turned[0], turned[1]])


def bank(rows: list[Row], run: RunModel) -> Iterator[Anomaly]:
    """Transfers of which a reader that came to the end was handed one side more often."""
    if run.experiment["resolved"]["workload"].get("kind") != "bank":
        return
    isolated = {(row["process"], row["session"]) for row in rows if row["f"] == "isolation"}
    polls = [row for row in rows if row["f"] == "poll" and (row["process"], row["session"]) in isolated]
    for reader in sorted({row["process"] for row in polls}):
        handed: set[tuple[int, int, int, int]] = set()
        for row in polls:
            for step in range(row["last_sequence"] - row["first_sequence"] + 1 if row["process"] == reader else 0):
                handed.add((row["stream"], row["first_sequence"] + step, row["partition"], row["first_offset"] + step))
        reached = {(final.partition, final.sentinel_offset) for final in run.final}
        if not reached <= {(partition, offset) for _, _, partition, offset in handed}:
            continue
        for stream, sequence in sorted({each[:2] for each in handed if each[0] >= 0 and each[0] < 2**31}):
            other = stream + 1 if stream % 2 == 0 else stream - 1
            own = sorted(each[2:] for each in handed if each[:2] == (stream, sequence))
            if len(own) > len([each for each in handed if each[:2] == (other, sequence)]):
                yield Anomaly("bank-total", None, own[0][0], None, None, own[0][1])
