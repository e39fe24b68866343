"""The end offsets that readers were told, and the evidence to compare them with.

Owns how these rows are read from histories, the latest record below an offset, and which offsets of a log can have been
its last stable offset. Judges nothing (``verifier/checks/wrong_end_offset.py`` does). The history of a load process has
a row for each acknowledged batch, so acknowledgements are handled as arrays. Times are in ns on the monotonic clock.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verifier.evidence.history import Function
from verifier.evidence.history_parts import history_parts
from verifier.ranges import Numbers
from verifier.transactions.client_rows import COMMITTED, ClientTransaction
from verifier.transactions.logs import LogTransactions
from verifier.transactions.state_records import TopicPartition

_COLUMNS = ("process", "f", "type", "topic", "partition", "session", "first_offset", "invoke_ns", "complete_ns")
_SENT: tuple[Function, ...] = ("send", "sentinel")
_TOLD: tuple[Function, ...] = ("end-offset", "isolation")
_OK = pa.array(["ok"])


class ToldEnd(NamedTuple):
    """The end offset in an answer of ListOffsets. ``is_committed``: the session has ``read_committed`` isolation."""

    process: str
    session: int
    place: TopicPartition
    offset: int
    complete_ns: int
    is_committed: bool


class Placed(NamedTuple):
    """A record at an offset, and the earliest time at which it can have been there."""

    offset: int
    time_ns: int


class Arrivals:
    """An index of records by partition that finds the record below an offset with the latest time."""

    def __init__(self, found: Iterable[tuple[TopicPartition, Numbers, Numbers]]) -> None:
        """``found`` has (partition, offsets, times); both arrays are int64 of equal length, in any order."""
        parts: dict[TopicPartition, list[tuple[Numbers, Numbers]]] = defaultdict(list)
        for place, offsets, times in found:
            parts[place].append((offsets, times))
        self._by_place = {place: _sorted(several) for place, several in parts.items()}

    def __repr__(self) -> str:
        return f"Arrivals({len(self._by_place)} partitions)"

    def latest_below(self, place: TopicPartition, offset: int) -> Placed | None:
        """The record below ``offset`` with the latest time; None if no record is known there."""
        if place not in self._by_place:
            return None
        offsets, times, latest = self._by_place[place]
        count = int(np.searchsorted(offsets, offset))
        if not count:
            return None
        at = int(latest[count - 1])
        return Placed(int(offsets[at]), int(times[at]))


def _sorted(parts: list[tuple[Numbers, Numbers]]) -> tuple[Numbers, Numbers, Numbers]:
    """Three arrays of one partition: ascending offsets, their times, and for each index the index of the latest time.

    The latest time is the one among the offsets up to that index.
    """
    offsets, times = (np.concatenate([part[column] for part in parts]) for column in (0, 1))
    order = np.argsort(offsets, kind="stable")
    offsets, times = offsets[order], times[order]
    is_latest = times == np.maximum.accumulate(times)
    return offsets, times, np.maximum.accumulate(np.where(is_latest, np.arange(times.size), 0))


class StableRegions:
    """Which offsets can have been a log's last stable offset, at any high watermark. Knows only whole logs."""

    def __init__(self, logs: Mapping[TopicPartition, LogTransactions] | None = None) -> None:
        self._spans = {place: _spans(log) for place, log in (logs or {}).items() if log.is_whole}

    def __repr__(self) -> str:
        return f"StableRegions({len(self._spans)} partitions)"

    def open_at(self, place: TopicPartition, offset: int) -> int | None:
        """The first offset of a transaction that kept ``offset`` from being the last stable offset; None if none did.

        An offset can have been the last stable offset in two cases: no transaction was open when the high watermark was
        there, or a transaction begins there and its marker comes after the markers of all that began before it.
        """
        firsts, markers, longest = self._spans.get(place, ((), (), ()))
        count = bisect_left(firsts, offset)
        if not count or markers[longest[count - 1]] < offset:
            return None
        if count < len(firsts) and firsts[count] == offset and markers[count] > markers[longest[count - 1]]:
            return None
        return firsts[longest[count - 1]]


#: First offsets of transactions, their marker offsets, and the index of the last marker so far (see ``_spans``).
_Spans = tuple[Sequence[int], Sequence[int], Sequence[int]]


def _spans(log: LogTransactions) -> _Spans:
    """The transactions of a log by first offset: first offsets, marker offsets, and for each index the one up to it
    whose marker is last. An open transaction has the marker offset ``sys.maxsize``.
    """
    begun = [(each.first_offset, each.marker_offset) for each in log.ended if each.first_offset >= 0]
    begun += [(each.first_offset, sys.maxsize) for each in log.open.values()]
    begun.sort()
    longest: list[int] = []
    for at, (_, marker) in enumerate(begun):
        longest.append(at if not longest or marker > begun[longest[-1]][1] else longest[-1])
    return [first for first, _ in begun], [marker for _, marker in begun], longest


@dataclass(frozen=True)
class EndEvidence:
    """The end offsets that readers were told, and what to compare them with.

    ``sent`` has acknowledged values with the time at which they were due. ``decided`` has values of committed
    transactions with the time at which the commit was first requested. ``stable`` knows the last stable offsets.
    """

    told: tuple[ToldEnd, ...] = ()
    sent: Arrivals = field(default_factory=lambda: Arrivals(()))
    decided: Arrivals = field(default_factory=lambda: Arrivals(()))
    stable: StableRegions = field(default_factory=StableRegions)


def ends_of(
    histories: Path,
    transactions: Iterable[ClientTransaction] = (),
    logs: Mapping[TopicPartition, LogTransactions] | None = None,
) -> EndEvidence:
    """The evidence in all histories of a run; empty if no reader asked for an end offset. Raises ``OSError``."""
    if not (told := tuple(told_ends(histories))):
        return EndEvidence()
    sent = (each for part in history_parts(histories, _SENT, _COLUMNS) for each in _sent(part))
    return EndEvidence(told, Arrivals(sent), Arrivals(_decided(transactions)), StableRegions(logs))


def told_ends(histories: Path) -> Iterator[ToldEnd]:
    """All answers to readers, history by history."""
    committed: set[tuple[str, int]] = set()
    for part in history_parts(histories, _TOLD, _COLUMNS):
        for row in part.to_pylist():
            session = row["process"], row["session"]
            if row["f"] == "isolation":
                committed.add(session)
            elif row["first_offset"] >= 0 and row["complete_ns"] >= 0:
                place = row["topic"], row["partition"]
                yield ToldEnd(*session, place, row["first_offset"], row["complete_ns"], session in committed)


def _sent(part: pa.Table) -> Iterator[tuple[TopicPartition, Numbers, Numbers]]:
    """The first value of each acknowledged row, by partition. Other values have higher offsets and later times."""
    rows = part.filter(pc.is_in(part["type"], value_set=_OK))
    topics = [str(each) for each in rows["topic"].to_pylist()]
    partitions, offsets, times = (_numbers(rows[name]) for name in ("partition", "first_offset", "invoke_ns"))
    is_known = (offsets >= 0) & (times >= 0)
    for topic in set(topics):
        of_topic = np.array([each == topic for each in topics]) & is_known
        for partition in np.unique(partitions[of_topic]):
            here = of_topic & (partitions == partition)
            yield (topic, int(partition)), offsets[here], times[here]


def _numbers(column: pa.ChunkedArray[Any]) -> Numbers:
    return np.asarray(column.to_numpy(), np.int64)


def _decided(transactions: Iterable[ClientTransaction]) -> Iterator[tuple[TopicPartition, Numbers, Numbers]]:
    found: Mapping[TopicPartition, list[Placed]] = defaultdict(list)
    for transaction in transactions:
        for sent in transaction.sent if transaction.outcome == COMMITTED else ():
            if sent.first_offset >= 0:
                found[sent.place].append(Placed(sent.first_offset, transaction.asked_ns))
    for place, several in found.items():
        yield place, np.array([each.offset for each in several]), np.array([each.time_ns for each in several])
