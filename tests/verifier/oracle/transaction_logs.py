"""What logs hold of transactions, read once more: batches with their producers and markers, and the records of the
coordinators."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, NamedTuple

from tests.verifier.oracle.frames import frames_in
from tests.verifier.oracle.reading import varint
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel

STATE_TOPIC = "__transaction_state"
Place = tuple[str, int]


class Row(NamedTuple):
    """One batch; ``what`` is "data", "COMMIT", "ABORT", "unreadable", or "" outside of transactions."""

    offset: int
    end: int
    leader_epoch: int
    producer_id: int
    epoch: int
    what: str
    count: int
    records: list[tuple[bytes | None, bytes | None]]

    @property
    def coordinator(self) -> int:
        """The epoch of the coordinator that wrote a marker."""
        return int.from_bytes((self.records[0][1] or b"")[2:6])


class State(NamedTuple):
    """One record of the topic; ``state`` 6 is a tombstone."""

    partition: int
    offset: int
    name: str
    producer_id: int
    epoch: int
    timeout: int
    state: int
    places: frozenset[Place]
    started: int
    leader_epoch: int


def read_run(directory: RunDirectory) -> tuple[dict[Place, list[Row]], dict[int, list[Row]]]:
    """Of each partition the most advanced copy, those of the coordinators' records by their numbers."""
    copies: dict[Place, list[list[Row]]] = {}
    for home in sorted(directory.nodes_dir.glob("*/data/*-*")):
        topic, _, partition = home.name.rpartition("-")
        if home.is_dir():
            copies.setdefault((topic, int(partition)), []).append(read_rows(home))
    best = {place: max(logs, key=lambda log: (log[-1].leader_epoch, log[-1].end) if log else (-1, 0))
            for place, logs in copies.items()}  # fmt: skip
    state = {place[1]: log for place, log in best.items() if place[0] == STATE_TOPIC}
    return {place: log for place, log in best.items() if place[0] != STATE_TOPIC}, state


def may_lose(run: RunModel, place: Place) -> bool:
    """Whether an election may cut off a marker; the coordinators' topic has what is the brokers' own default."""
    if place[0] == "__consumer_offsets":
        return run.experiment["resolved"]["broker"]["unclean.leader.election.enable"] is not False
    return run.may_elect_uncleanly


def logs_of(directory: RunDirectory) -> dict[Place, list[Row]]:
    """Of each partition the most advanced copy, if nothing was taken from it; none in a run without transactions."""
    logs, state = read_run(directory)
    return {place: log for place, log in logs.items()
            if state and whole(log) and not any(row.what == "unreadable" and row.count for row in log)}  # fmt: skip


def whole(log: list[Row]) -> bool:
    """From offset 0, offset by offset."""
    offsets = [number for row in log for number in range(row.offset, row.end)]
    return offsets == list(range(len(offsets))) and all(row.count == row.end - row.offset for row in log)


def read_rows(home: Path) -> list[Row]:
    found: list[Row] = []
    files = sorted(home.glob("*.log"))
    for frame in (each for path in files for each in frames_in(path)):
        records = read_keyed(frame.data, frame.count) if frame.sound and not frame.attributes & 7 else None
        what = "data" if frame.attributes & 0x10 else ""
        if frame.attributes & 0x20:
            key = records[0][0] if records and len(records) == 1 else None
            what = {0: "ABORT", 1: "COMMIT"}.get(key[3] if key else -1, "unreadable")
        what = what if frame.producer_id >= 0 else ""
        found.append(
            Row(frame.base, frame.last + 1, frame.leader_epoch, frame.producer_id, frame.producer_epoch, what,
                frame.count, records or [])
        )  # fmt: skip
    if not found and files and int(files[0].stem):
        # everything was deleted
        found.append(Row(int(files[0].stem), int(files[0].stem), -1, -1, -1, "", -1, []))
    return found


def read_keyed(batch: bytes, count: int) -> list[tuple[bytes | None, bytes | None]]:
    at, found = 61, []
    for _ in range(count):
        size, at = varint(batch, at, 5)
        end = at + size
        _, at = varint(batch, at + 1, 10)
        _, at = varint(batch, at, 5)
        both: list[bytes | None] = []
        for _ in range(2):
            length, at = varint(batch, at, 5)
            both.append(batch[at : at + length] if length >= 0 else None)
            at += max(length, 0)
        found.append((both[0], both[1]))
        at = end
    return found


def read_state(partition: int, row: Row) -> State | None:
    """The only record of a batch."""
    if len(row.records) != 1 or row.records[0][0] is None:
        return None
    key, value = row.records[0]
    assert key is not None
    name = key[4:].decode()
    if value is None:
        return State(partition, row.offset, name, -1, -1, -1, 6, frozenset(), -1, row.leader_epoch)
    if len(value) < 37:
        return None
    version, producer_id, epoch, timeout, state, topics = struct.unpack_from(">hqhibi", value)
    at, places = 21, set()
    for _ in range(max(topics, 0)):
        (size,) = struct.unpack_from(">h", value, at)
        topic, at = value[at + 2 : at + 2 + size].decode(), at + 2 + size
        (count,) = struct.unpack_from(">i", value, at)
        numbers: Any = struct.unpack_from(f">{count}i", value, at + 4)
        at += 4 + 4 * count
        places |= {(topic, number) for number in numbers}
    (started,) = struct.unpack_from(">q", value, at + 8)
    known = version == 0 and 0 <= state < 6
    places_there = frozenset(places)
    return (
        State(partition, row.offset, name, producer_id, epoch, timeout, state, places_there, started, row.leader_epoch)
        if known
        else None
    )


def stable_offsets(log: list[Row]) -> set[int]:
    """The last stable offset for every high watermark that the log can have had."""
    end = max((row.end for row in log), default=0)
    return {min([first for first, marker in spans(log) if first < h <= marker], default=h) for h in range(end + 1)}


def spans(log: list[Row]) -> list[tuple[int, int]]:
    """First offset and marker of each transaction; one that is open has its marker beyond everything."""
    found, opened = [], {}
    for row in log:
        if row.what == "data":
            opened.setdefault(row.producer_id, row.offset)
        elif row.what in ("COMMIT", "ABORT") and row.producer_id in opened:
            found.append((opened.pop(row.producer_id), row.offset))
    return found + [(first, 1 << 62) for first in opened.values()]
