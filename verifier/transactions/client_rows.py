"""Joins the rows of histories into the transactions that clients saw and the values that readers received. Pure.

Owns the rules for a transaction's outcome (docs/history.md "Transactions"). Any doubt makes it UNKNOWN: a commit
without an answer may have happened, whatever the client did afterwards. Only readers with
``isolation.level=read_committed`` matter here. Judges nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, Generic, NamedTuple, TypeVar

from verifier.evidence.history import Function
from verifier.transactions.state_records import TopicPartition

Item = TypeVar("Item")

#: Outcomes of a transaction: certainly committed, certainly not committed, or neither is certain.
COMMITTED, ABORTED, UNKNOWN = "committed", "aborted", "unknown"

#: The functions (``f``) of the rows about transactions, besides ``send`` and ``poll``.
FUNCTIONS: tuple[Function, ...] = ("begin", "commit", "abort", "offsets", "isolation", "member")
#: The columns that ``client_evidence`` reads.
COLUMNS = (
    "process", "f", "type", "topic", "partition", "stream", "first_sequence", "last_sequence", "first_offset",
    "last_offset", "invoke_ns", "complete_ns", "session", "op", "producer_id",
)  # fmt: skip


class Sent(NamedTuple):
    """Consecutive values of one stream that a transaction sent. ``first_offset`` is -1 if it is unknown."""

    place: TopicPartition
    stream: int
    first_sequence: int
    last_sequence: int
    first_offset: int


class Handed(NamedTuple):
    """Consecutive values that one poll returned to a session with ``isolation.level=read_committed``.

    ``first_offset`` is -1 if it is unknown. ``complete_ns`` is the end of the poll on the monotonic clock.
    """

    process: str
    place: TopicPartition
    stream: int
    first_sequence: int
    last_sequence: int
    first_offset: int
    complete_ns: int

    def offset_of(self, sequence: int) -> int:
        """The offset of the value with this sequence."""
        return self.first_offset + sequence - self.first_sequence


@dataclass(frozen=True, slots=True)
class ClientTransaction:
    """Transaction ``number`` of a process, as its history shows it. Times are in ns on the monotonic clock; -1 is none.

    - ``begin_ns``: the earliest time in any of its rows. A record may have been due before the transaction began.
    - ``begun_ns``: when the client began the transaction.
    - ``asked_ns``: when the client first requested the commit.
    - ``ended_ns``: when the client knew that the commit had succeeded.
    - ``read``: the polled values at the offsets that the transaction took as its input.
    - ``producer_id``: the id in its successful commit, or else in a row that begins or ends it; -1 if no row has one.
    """

    process: str
    number: int
    outcome: str
    begin_ns: int
    asked_ns: int
    ended_ns: int
    sent: tuple[Sent, ...] = ()
    read: tuple[Handed, ...] = ()
    producer_id: int = -1
    begun_ns: int = -1

    def __str__(self) -> str:
        return f"transaction {self.number} of {self.process}"


class Overlaps(Generic[Item]):
    """An index of inclusive spans (first, last, item) that finds those that overlap a given span."""

    def __init__(self, spans: Iterable[tuple[int, int, Item]]) -> None:
        self._spans = sorted(spans, key=lambda span: span[:2])
        #: For each span, the highest end of all spans up to it. The search backwards stops when it is too low.
        self._highest = [*accumulate((last for _, last, _ in self._spans), max)]

    def __repr__(self) -> str:
        return f"Overlaps({len(self._spans)} spans)"

    def of(self, first: int, last: int) -> Iterator[tuple[int, int, Item]]:
        """Each span that overlaps ``first..last``: the first and last number of the overlap, and the item."""
        at = bisect_right(self._spans, last, key=lambda span: span[0])
        while at and self._highest[at - 1] >= first:
            at -= 1
            start, stop, item = self._spans[at]
            if stop >= first:
                yield max(start, first), min(stop, last), item


@dataclass(frozen=True)
class ClientEvidence:
    """All transactions of a run's clients, and all values that ``read_committed`` sessions received.

    ``members`` are the processes that read as members of a consumer group. Each of them receives only a part.
    """

    transactions: Sequence[ClientTransaction]
    polled: Sequence[Handed]
    members: frozenset[str] = frozenset()

    @cached_property
    def _by_stream(self) -> Mapping[tuple[TopicPartition, int], Overlaps[int]]:
        spans: dict[tuple[TopicPartition, int], list[tuple[int, int, int]]] = defaultdict(list)
        for number, transaction in enumerate(self.transactions):
            for sent in transaction.sent:
                spans[sent.place, sent.stream].append((sent.first_sequence, sent.last_sequence, number))
        return {key: Overlaps(found) for key, found in spans.items()}

    def writers(self, polled: Handed) -> list[tuple[int, int, int]]:
        """The transactions that sent these values: (first sequence, last sequence, number in ``transactions``)."""
        spans = self._by_stream.get((polled.place, polled.stream))
        return [] if spans is None else sorted(spans.of(polled.first_sequence, polled.last_sequence))


#: The values that one process received, by partition and offset.
_Inputs = Mapping[TopicPartition, Overlaps[Handed]]


def client_evidence(rows: Iterable[Mapping[str, Any]]) -> ClientEvidence:
    """The evidence in the rows of all histories. The rows of each process are in the order of its history."""
    by_transaction: dict[tuple[str, int], list[Mapping[str, Any]]] = defaultdict(list)
    polls: dict[str, list[Handed]] = defaultdict(list)
    isolated: set[tuple[str, int]] = set()
    members: set[str] = set()
    for row in rows:
        match row["f"]:
            case "isolation" | "member":
                isolated.add((row["process"], row["session"]))
                if row["f"] == "member":
                    members.add(row["process"])
            case "poll":
                if (row["process"], row["session"]) in isolated and row["stream"] >= 0:
                    polls[row["process"]].append(_polled(row))
            case "begin" | "commit" | "abort" | "offsets" | "send" if row["op"] >= 0:
                by_transaction[row["process"], row["op"]].append(row)
    handed = {process: _by_offset(found) for process, found in polls.items()}
    transactions = [
        _transaction(process, number, told, handed.get(process, {}))
        for (process, number), told in sorted(by_transaction.items())
    ]
    polled = [each for process in sorted(polls) for each in polls[process]]
    return ClientEvidence(transactions, polled, frozenset(members))


def outcome(ends: Iterable[tuple[str, str]]) -> str:
    """The outcome of a transaction, from (f, type) of each ``commit`` or ``abort`` row that it has."""
    told = set(ends)
    if ("commit", "ok") in told:
        return COMMITTED
    if ("commit", "info") in told or not told:
        return UNKNOWN
    # either no commit was requested, or every commit was certainly refused
    return ABORTED


def _transaction(process: str, number: int, rows: Sequence[Mapping[str, Any]], polls: _Inputs) -> ClientTransaction:
    ends = [row for row in rows if row["f"] in ("commit", "abort")]
    commits = [row for row in ends if row["f"] == "commit"]
    sent = [
        Sent(
            (row["topic"], row["partition"]),
            row["stream"],
            row["first_sequence"],
            row["last_sequence"],
            row["first_offset"] if row["type"] == "ok" else -1,
        )
        for row in rows
        if row["f"] == "send" and row["type"] != "fail" and 0 <= row["first_sequence"] <= row["last_sequence"]
    ]
    inputs = [row for row in rows if row["f"] == "offsets" and row["type"] != "fail"]
    begin_ns = min((row["invoke_ns"] for row in rows), default=-1)
    known = [row for row in commits if row["type"] == "ok"] or [
        row for row in rows if row["f"] == "begin" or row in ends
    ]
    return ClientTransaction(
        process,
        number,
        outcome((row["f"], row["type"]) for row in ends),
        begin_ns,
        min((row["invoke_ns"] for row in commits), default=-1),
        max((row["complete_ns"] for row in commits if row["type"] == "ok"), default=-1),
        tuple(sent),
        tuple(_inputs(inputs, polls)),
        max((row["producer_id"] for row in known), default=-1),
        min((row["invoke_ns"] for row in rows if row["f"] == "begin"), default=begin_ns),
    )


def _inputs(inputs: Sequence[Mapping[str, Any]], polls: _Inputs) -> Iterator[Handed]:
    """The part of a process's polled values that lies at the input offsets of a transaction."""
    for row in inputs:
        handed = polls.get((row["topic"], row["partition"]))
        shared = () if handed is None else handed.of(row["first_offset"], row["last_offset"])
        for first, last, polled in sorted(shared):
            sequence = polled.first_sequence + first - polled.first_offset
            yield polled._replace(first_sequence=sequence, last_sequence=sequence + last - first, first_offset=first)


def _by_offset(polls: Sequence[Handed]) -> _Inputs:
    spans: dict[TopicPartition, list[tuple[int, int, Handed]]] = defaultdict(list)
    for each in polls:
        if each.first_offset >= 0:
            last = each.first_offset + each.last_sequence - each.first_sequence
            spans[each.place].append((each.first_offset, last, each))
    return {place: Overlaps(found) for place, found in spans.items()}


def _polled(row: Mapping[str, Any]) -> Handed:
    return Handed(
        row["process"],
        (row["topic"], row["partition"]),
        row["stream"],
        row["first_sequence"],
        row["last_sequence"],
        row["first_offset"],
        row["complete_ns"],
    )
