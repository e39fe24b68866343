"""``internal-divergence`` once more, slow and obvious: every replica beside the most advanced one, batch by batch."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.verifier.oracle.files import lines, read
from tests.verifier.oracle.frames import HEADER, Frame, frames_in
from tests.verifier.oracle.model import Anomaly
from tests.verifier.oracle.transaction_logs import read_keyed
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel

TOPICS = ("__consumer_offsets", "__transaction_state", "gapless-output")
NAME = "internal-divergence"


def records_of(batch: Frame) -> dict[int, tuple[bytes | None, bytes | None]]:
    """By offset, none of a control batch."""
    if not batch.sound or batch.attributes & 0x20:
        return {}
    deltas, at = [], HEADER
    for _ in range(batch.count):
        size, at = number(batch.data, at)
        _, after = number(batch.data, at + 1)
        deltas.append(number(batch.data, after)[0])
        at += size
    return {batch.base + delta: each for delta, each in zip(deltas, read_keyed(batch.data, batch.count), strict=True)}


def number(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint, and where it ends."""
    raw = shift = 0
    while True:
        raw |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return (raw >> 1) ^ -(raw & 1), at


def batches_of(home: Path) -> Iterator[Frame]:
    for path in sorted(home.glob("*.log")):
        yield from frames_in(path)


def find_all(directory: RunDirectory, run: RunModel) -> list[Anomaly]:
    """What the check must find in a run."""
    homes: dict[tuple[str, int], dict[int, Path]] = {}
    for topic in TOPICS:
        for home in directory.nodes_dir.glob(f"*/data/{topic}-*"):
            place = topic, int(home.name.rpartition("-")[2])
            homes.setdefault(place, {})[int(home.parent.parent.name)] = home
    found: list[Anomaly] = []
    for place, copies in homes.items():
        found += judge(place, dict(sorted(copies.items())), run)
    return found


def judge(place: tuple[str, int], homes: dict[int, Path], run: RunModel) -> Iterator[Anomaly]:
    logs = {broker: list(batches_of(home)) for broker, home in homes.items()}
    ends = {broker: end_of(home) for broker, home in homes.items()}
    best = max(logs, key=lambda broker: ends[broker])
    broker_keys: dict[str, Any] = run.experiment["resolved"]["broker"]
    loses = broker_keys["unclean.leader.election.enable"] is not False
    loses = loses or (place[0] == "gapless-output" and run.settings.unclean_leader_election)
    names = {broker: sorted(int(path.stem) for path in home.glob("*.log")) for broker, home in homes.items()}
    has_all = place[0] == "gapless-output" or all(each == [0] for each in names.values())
    for broker, log in logs.items():
        if broker == best:
            continue
        limit = min(noted(homes[best], place), noted(homes[broker], place))
        if loses and place[0] != "__transaction_state":
            limit = 0
        for offset in sorted(different(logs[best], log, limit)):
            yield Anomaly(NAME, "different", place[1], None, None, offset)
        for cause, has, lacks, start in (
            ("missing", logs[best], log, names[broker][0]),
            ("extra", log, logs[best], names[best][0]),
        ):
            for offset in absent(has, lacks, start, limit) if has_all else forgotten(has, lacks, limit):
                yield Anomaly(NAME, cause, place[1], None, None, offset)


def end_of(home: Path) -> tuple[int, int]:
    """The newest epoch of the last file that has any, and the highest offset there."""
    for path in sorted(home.glob("*.log"), reverse=True):
        if found := list(frames_in(path)):
            return max(each.leader_epoch for each in found), max(each.last for each in found)
    return -1, -1


def noted(home: Path, place: tuple[str, int]) -> int:
    """The high watermark that a broker noted when it stopped cleanly; 0 if that cannot be read."""
    if not (home.parent / ".kafka_cleanshutdown").exists():
        return 0
    rows = lines(read(home.parent / "replication-offset-checkpoint") or b"", 3) or []
    return next((int(offset) for topic, index, offset in rows if (topic, int(index)) == place), 0)


def different(judged: list[Frame], other: list[Frame], limit: int) -> Iterator[int]:
    for mine in judged:
        for theirs in other:
            if mine.base != theirs.base or not mine.sound:
                continue
            committed = mine.last < limit and theirs.last < limit
            if not theirs.sound or mine.leader_epoch != theirs.leader_epoch:
                if committed:
                    yield mine.base
            elif mine.last != theirs.last or (mine.whole and theirs.whole and mine.data != theirs.data):
                yield mine.base
            elif not (mine.whole and theirs.whole):
                ours, others = records_of(mine), records_of(theirs)
                both = ours.keys() & others.keys()
                yield from (at for at in both if at < limit and ours[at] != others[at])


def absent(has: list[Frame], lacks: list[Frame], start: int, limit: int) -> Iterator[int]:
    for batch in has:
        is_absent = all(other.base != batch.base for other in lacks)
        if is_absent and batch.sound and start <= batch.base and batch.last < limit:
            yield batch.base


def forgotten(has: list[Frame], lacks: list[Frame], limit: int) -> Iterator[int]:
    """The newest record of each key that counts."""
    theirs = [(offset, key) for batch in lacks for offset, (key, _) in records_of(batch).items()]
    newest: dict[bytes, tuple[int, bytes | None]] = {}
    for batch in has:
        if counts(batch, has):
            newest |= {key: (at, value) for at, (key, value) in records_of(batch).items() if key is not None}
    for key, (at, value) in newest.items():
        is_damaged = any(not batch.sound and batch.base <= at <= batch.last for batch in lacks)
        is_there = is_damaged or any(offset == at or (other == key and offset > at) for offset, other in theirs)
        if value is not None and at < limit and not is_there:
            yield at


def counts(batch: Frame, log: list[Frame]) -> bool:
    if not batch.attributes & 0x10:
        return True
    later = [each for each in log if each.base > batch.base and each.producer_id == batch.producer_id]
    ends = [each for each in later if each.attributes & 0x20]
    return bool(ends) and read_keyed(ends[0].data, 1)[0][0] == struct.pack(">hh", 0, 1)
