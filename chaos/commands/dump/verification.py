"""Whether the files of a replica agree with each other: what Kafka's DumpLogSegments does with --verify-index-only and
--deep-iteration, for all segments of a directory at once.

Owns the comparison. Checked are every checksum, that offsets ascend, the records of every batch, each entry of the
indexes against the batches, the epochs of the batches against leader-epoch-checkpoint, and that the small files can be
read. A live broker may be between two writes: what is wrong at its very end may be right a moment later.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from chaos.commands.dump import files, segments
from chaos.commands.dump.entries import Damage, Entry, Lines
from chaos.exits import BadRequest
from cluster.log.checkpoints import LEADER_EPOCH_FILE
from cluster.log.directories import parse_replica_directory_name
from cluster.protocol.batch import BatchHeader
from cluster.protocol.errors import ProtocolError
from cluster.protocol.records import decode_records


@dataclass(slots=True)
class Scanned:
    """What the batches of one segment say. Lists have one element a batch."""

    base_offset: int
    positions: list[int] = field(default_factory=list)
    base_offsets: list[int] = field(default_factory=list)
    last_offsets: list[int] = field(default_factory=list)
    max_timestamps: list[int] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    records: int = 0
    size_bytes: int = 0

    def add(self, position: int, header: BatchHeader) -> None:
        self.positions.append(position)
        self.base_offsets.append(header.base_offset)
        self.last_offsets.append(header.last_offset)
        self.max_timestamps.append(header.max_timestamp)
        self.epochs.append(header.leader_epoch)
        self.records += header.record_count
        self.size_bytes = position + header.size_bytes

    @property
    def end_offset(self) -> int:
        return self.last_offsets[-1] + 1 if self.last_offsets else self.base_offset

    def batch_of(self, offset: int) -> int | None:
        """Which batch holds ``offset``; None if none does."""
        at = bisect_right(self.base_offsets, offset) - 1
        return at if at >= 0 and offset <= self.last_offsets[at] else None

    def summary(self, name: str) -> Entry:
        return Entry(
            {
                "segment": name,
                "base_offset": self.base_offset,
                "end_offset": self.end_offset,
                "batches": len(self.positions),
                "records": self.records,
                "size_bytes": self.size_bytes,
                "max_timestamp": max(self.max_timestamps, default=-1),
                "epochs": f"{min(self.epochs)}..{max(self.epochs)}" if self.epochs else None,
            }
        )


def is_replica(path: Path) -> bool:
    """Whether a directory holds the log of one partition."""
    return any(path.glob("*.log")) or parse_replica_directory_name(path.name) is not None


def data_directory(path: Path) -> Lines:
    """A broker's data directory: its replicas one line each, and what is wrong with any of them."""
    replicas = sorted(inner for inner in path.iterdir() if inner.is_dir() and is_replica(inner))
    if not replicas:
        raise BadRequest(f"{path} holds no partition and is none: there is no .log file in it or below it")
    for inner in replicas:
        segments_of, size_bytes, start, end = 0, 0, None, 0
        for line in replica(inner):
            if isinstance(line, Damage):
                yield Damage(f"{inner.name}/{line.text}")
            elif "segment" in line.fields:
                segments_of += 1
                size_bytes += int(str(line.fields["size_bytes"]))
                start = line.fields["base_offset"] if start is None else start
                end = int(str(line.fields["end_offset"]))
        yield Entry(
            {"partition": inner.name, "segments": segments_of, "start": start, "end": end, "size_bytes": size_bytes}
        )
    for inner in sorted(path.iterdir()):
        if inner.is_file() and inner.name != ".lock":
            yield from _damage_of(inner)


def replica(path: Path) -> Lines:
    """A partition's directory: a line for each segment and for each small file, and what is wrong."""
    logs = sorted(inner for inner in path.iterdir() if inner.suffix == ".log")
    epochs = _epochs(path / LEADER_EPOCH_FILE)
    end: int | None = None
    for log in logs:
        scanned = Scanned(segments.base_offset_of(log))
        if end is not None and scanned.base_offset < end:
            yield Damage(f"{log.name}: it begins before the segment before it ends, at offset {end}")
        yield from _scan(log, scanned)
        yield scanned.summary(log.name)
        for found in (*_offset_entries(log, scanned), *_time_entries(log, scanned), *_wrong_epochs(scanned, epochs)):
            yield Damage(f"{found}")
        end = scanned.end_offset
    for inner in sorted(path.iterdir()):
        if inner.suffix in (".log", ".index", ".timeindex"):
            continue
        if inner.suffix in (".txnindex", ".snapshot", ".producers"):
            yield Entry({"file": inner.name, "size_bytes": inner.stat().st_size})
        elif not inner.is_dir():
            yield Entry({"file": inner.name, "lines": len(inner.read_bytes().splitlines())})
        yield from _damage_of(inner)
    if end is not None:
        yield from _beyond_the_end(path, end)


def _scan(log: Path, scanned: Scanned) -> Iterator[Damage]:
    for found in segments.batches(log):
        if isinstance(found, Damage):
            yield Damage(f"{log.name}: {found.text}")
            continue
        position, header, data, good = found
        if header.base_offset < scanned.end_offset:
            text = f"the batch at byte {position} begins at offset {header.base_offset}, {scanned.end_offset} is next"
            yield Damage(f"{log.name}: {text}")
        scanned.add(position, header)
        if good:
            try:
                decode_records(data)
            except ProtocolError as error:
                yield Damage(f"{log.name}: the records of the batch at byte {position} cannot be read: {error}")


def _offset_entries(log: Path, scanned: Scanned) -> Iterator[str]:
    """Each entry names the last offset of an append and where that append begins."""
    index = log.with_suffix(".index")
    starts = {position: at for at, position in enumerate(scanned.positions)}
    ends = set(scanned.last_offsets)
    for line in _read(index):
        if isinstance(line, Damage):
            yield f"{index.name}: {line.text}"
            continue
        offset, position = int(str(line.fields["offset"])), int(str(line.fields["position"]))
        at = starts.get(position)
        if at is None:
            yield f"{index.name}: offset {offset} is said to be at byte {position}, where no batch begins"
        elif offset not in ends or offset < scanned.base_offsets[at]:
            bounds = f"{scanned.base_offsets[at]}..{scanned.last_offsets[at]}"
            yield f"{index.name}: offset {offset} is said to be at byte {position}, where a batch of {bounds} is"


def _time_entries(log: Path, scanned: Scanned) -> Iterator[str]:
    """Each entry names the newest timestamp so far and the last offset of the batch that has it, ascending in both."""
    index = log.with_suffix(".timeindex")
    before = (-1, -1)
    for line in _read(index):
        if isinstance(line, Damage):
            yield f"{index.name}: {line.text}"
            continue
        timestamp, offset = int(str(line.fields["timestamp"])), int(str(line.fields["offset"]))
        at = scanned.batch_of(offset)
        if timestamp <= before[0] or offset < before[1]:
            yield f"{index.name}: ({timestamp}, {offset}) does not ascend from {before}"
        elif at is None:
            yield f"{index.name}: ({timestamp}, {offset}): no batch has that offset"
        elif scanned.max_timestamps[at] != timestamp:
            yield f"{index.name}: ({timestamp}, {offset}): the batch's newest timestamp is {scanned.max_timestamps[at]}"
        before = timestamp, offset


def _read(path: Path) -> Lines:
    return files.lines_of(path, with_records=False) if path.exists() else iter(())


def _epochs(path: Path) -> list[tuple[int, int]]:
    """(start offset, epoch) of leader-epoch-checkpoint, as far as it can be read."""
    good = [line.fields for line in _read(path) if isinstance(line, Entry)]
    return [(int(str(entry["start_offset"])), int(str(entry["epoch"]))) for entry in good]


def _wrong_epochs(scanned: Scanned, epochs: list[tuple[int, int]]) -> Iterator[str]:
    """The first batch whose leader epoch is not the one that leader-epoch-checkpoint has for its offset."""
    starts = [start for start, _ in epochs]
    for base_offset, epoch in zip(scanned.base_offsets, scanned.epochs, strict=True):
        at = bisect_right(starts, base_offset) - 1
        said = epochs[at][1] if at >= 0 else None
        if epochs and said != epoch:
            yield f"{LEADER_EPOCH_FILE}: epoch {said} for offset {base_offset}, the batch there has {epoch}"
            return


def _damage_of(path: Path) -> Iterator[Damage]:
    try:
        lines = list(files.lines_of(path, with_records=False))
    except BadRequest:
        yield Damage(f"{path.name}: no file of a log has that name")
        return
    yield from (Damage(f"{path.name}: {line.text}") for line in lines if isinstance(line, Damage))


def _beyond_the_end(path: Path, end: int) -> Iterator[Damage]:
    """Snapshots and epochs of offsets that the log does not have."""
    for inner in sorted([*path.glob("*.snapshot"), *path.glob("*.producers")]):
        if segments.base_offset_of(inner) > end:
            yield Damage(f"{inner.name}: it is of an offset beyond the end of the log, {end}")
    for start, epoch in _epochs(path / LEADER_EPOCH_FILE):
        if start > end:
            yield Damage(f"{LEADER_EPOCH_FILE}: epoch {epoch} starts at {start}, beyond the end of the log, {end}")
