"""The story of one batch: who sent it, which logs took it and gave it up, what was told of it, and what went wrong.

Owns the observation of the brokers' logs while a simulation runs, and the choice of the lines that concern the batch.
Changes nothing of the simulation: its event log is the same, byte for byte.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import Context
from typing import Any, NamedTuple
from unittest import mock

from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import BatchHeader, iter_batches
from cluster.protocol.records import decode_records
from tests.simulation.ledger import value_of
from tests.support.virtual_time import OWNER

_LINE = re.compile(r" *([0-9.]+) (.{12}) (.*)")
_READS = re.compile(r"(?:reads )?(\S+-\d+)\b")
_READ = re.compile(r"read (\d+)\.\.(\d+)")

#: (partition, first offset, last offset): where a batch stood.
Span = tuple[str, int, int]


class Took(NamedTuple):
    """A log took a batch (``values``), as its leader or not; or it ends or begins at ``first`` from now on."""

    at_s: float
    broker_id: int
    partition: str
    what: str
    first: int
    last: int = -1
    values: tuple[str, ...] = ()
    text: str = ""

    @property
    def line(self) -> str:
        return f"{self.at_s:11.6f} {f'broker {self.broker_id}':<12} {self.text}"


@contextlib.contextmanager
def watched() -> Iterator[list[Took]]:
    """What logs take and give up meanwhile, in order."""
    seen: list[Took] = []

    def note(log: PartitionLog, what: str, text: str, first: int, last: int = -1, values: tuple[str, ...] = ()) -> None:
        owner: Any = OWNER.get()
        partition = f"{log.topic}-{log.partition}"
        # A broker's own clock may be another.
        at_s = Context().run(asyncio.get_running_loop().time)
        seen.append(Took(at_s, owner[0] if owner else 0, partition, what, first, last, values, f"{partition}: {text}"))

    def take(log: PartitionLog, verb: str, batches: bytes) -> None:
        for position, header in iter_batches(batches):
            values = _values(batches[position : position + header.size_bytes])
            text = f"{verb} {header.base_offset}..{header.last_offset} in epoch {header.leader_epoch}, {_who(header)}"
            note(log, "take", text, header.base_offset, header.last_offset, values)

    def append_as_leader(log: PartitionLog, batch: Any, header: BatchHeader, *rest: int) -> Any:
        info = leading(log, batch, header, *rest)
        if info.duplicate:
            text = f"has {_who(header)} at {info.first_offset}..{info.last_offset}"
            note(log, "take", text, info.first_offset, info.last_offset, _values(bytes(batch)))
        else:
            # Its offset was written into it.
            take(log, "appends", bytes(batch))
        return info

    def append_as_follower(log: PartitionLog, records: memoryview) -> Any:
        batches, info = bytes(records), following(log, records)
        if info is not None:
            take(log, "copies", batches)
        return info

    def moved(method: Callable[..., Any], what: str, verb: str) -> Callable[..., Any]:
        def move(log: PartitionLog, offset: int, *rest: Any) -> Any:
            before = log.log_start_offset if what == "begin" else log.log_end_offset
            result = method(log, offset, *rest)
            if offset != before:
                note(log, what, f"{verb} {offset}, not at {before} any more", offset)
            return result

        return move

    leading, following = PartitionLog.append_as_leader, PartitionLog.append_as_follower
    instead = {
        "append_as_leader": append_as_leader,
        "append_as_follower": append_as_follower,
        "truncate_to": moved(PartitionLog.truncate_to, "end", "is cut: it ends at"),
        "truncate_fully_and_start_at": moved(PartitionLog.truncate_fully_and_start_at, "end", "is emptied: it is at"),
        "advance_log_start_offset": moved(PartitionLog.advance_log_start_offset, "begin", "begins at"),
    }
    with mock.patch.multiple(PartitionLog, **instead):
        yield seen


def _values(batch: bytes) -> tuple[str, ...]:
    return tuple(_plain(value_of(record.value, record.headers).decode()) for record in decode_records(batch))


def _who(header: BatchHeader) -> str:
    return f"producer {header.producer_id} epoch {header.producer_epoch} sequence {header.base_sequence}"


def _plain(value: str) -> str:
    """Without its padding."""
    return value.rstrip(".")


def story(wanted: str, seen: Sequence[Took], events: str) -> str:
    """The lines that concern the batches with this value, or at this offset (``t-0@17``); of the event log those of the
    nemesis, of the oracle, of who sent it and who read it, and of the partition's changes."""
    match = re.fullmatch(r"(.+-\d+)@(\d+)", wanted)
    if match is not None:
        partition, offset = match[1], int(match[2])
        batches = {each.values for each in seen if each.partition == partition and each.first <= offset <= each.last}
        places = [each for each in seen if each.partition == partition and each.values in batches]
    else:
        value = _plain(wanted)
        places = [each for each in seen if value in each.values]
    if not places:
        return f"no log took {wanted!r}\n"
    spans = {(each.partition, each.first, each.last) for each in places}
    told = [each.line for each in seen if each in places or _is_moved_over(each, spans)]
    lines = [(line, found[2].rstrip(), found[3]) for line in events.splitlines() if (found := _LINE.fullmatch(line))]
    # A reader's first event says what it reads.
    read_by: dict[str, str] = {}
    for _, who, what in lines:
        if who.startswith(("reader", "consumer")) and (reads := _READS.match(what)) is not None:
            read_by.setdefault(who, reads[1])
    chosen = [line for line, who, what in lines if _concerns(who, what, places, spans, read_by)]
    return "\n".join(heapq.merge(told, chosen, key=_time)) + "\n"


def _time(line: str) -> float:
    return float(line.split(maxsplit=1)[0])


def _is_moved_over(each: Took, spans: set[Span]) -> bool:
    """Whether a log gave up a place at which the batch stood somewhere."""
    if each.what == "take":
        return False
    return any(
        each.partition == partition and (each.first <= last if each.what == "end" else each.first > first)
        for partition, first, last in spans
    )


def _concerns(who: str, what: str, places: Sequence[Took], spans: set[Span], read_by: Mapping[str, str]) -> bool:
    if who == "nemesis":
        return not what.startswith("moves ")
    if who == "oracle":
        return any(f"'{value}" in what for place in places for value in place.values)
    if who.startswith("broker"):
        named = (partition.rpartition("-") for partition, _, _ in spans)
        return any(f" topic={topic} partition={number} " in what for topic, _, number in named)
    if (read := _READ.match(what)) is not None:
        first, last = int(read[1]), int(read[2])
        return any(read_by.get(who) == span[0] and first <= span[2] and span[1] <= last for span in spans)
    return _is_of_the_sender(who, what, places)


def _is_of_the_sender(who: str, what: str, places: Sequence[Took]) -> bool:
    """A Producer names its records by their numbers; a writer its batches by sequences and counts."""
    for place in places:
        numbers = {value.rpartition("/")[2] for value in place.values if value.rpartition("/")[0] == who}
        sequence = f"{place.text.rpartition(' ')[2]}+{len(place.values)}"
        if numbers and (what.split()[0] in numbers or what.removeprefix("sends ").split()[0] == sequence):
            return True
    return False
