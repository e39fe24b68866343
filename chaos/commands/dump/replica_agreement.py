"""Whether the files of a replica agree with each other: what Kafka's DumpLogSegments does with --verify-index-only and
--deep-iteration, for all segments of a directory at once.

Owns the walk through a directory: every checksum, that offsets ascend, the records of every batch, and that the small
files can be read. What indexes, checkpoints and snapshots must be is the verifier's (``verifier.files``), which reads
their bytes by itself. A live broker may be between two writes: what is wrong at its very end may be right a moment
later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from chaos.commands.dump import files, segments
from chaos.commands.dump.entries import DamagedPart, Entry, Lines
from chaos.exits import BadRequest
from cluster.log.data_directory import parse_replica_directory_name
from cluster.protocol.batch import BatchHeader
from cluster.protocol.errors import ProtocolError
from cluster.protocol.records import decode_records
from verifier.evidence.run_directory import RunDirectory
from verifier.files.checkpoints import OFFSET_FILES
from verifier.files.model import SNAPSHOT
from verifier.files.replica import ReplicaDirectory, check, is_clean


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

    @property
    def has_holes(self) -> bool:
        """Whether offsets between its batches are missing, as compaction leaves it."""
        return any(after != last + 1 for last, after in zip(self.last_offsets, self.base_offsets[1:], strict=False))

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
    """Whether a directory holds the log of one partition, and not just any ``.log``, as runs and brokers write."""
    segments_there = any(each.stem.isdecimal() for each in path.glob("*.log"))
    return segments_there or parse_replica_directory_name(path.name) is not None


def data_directory(path: Path) -> Lines:
    """A broker's data directory: its replicas one line each, and what is wrong with any of them."""
    replicas = sorted(inner for inner in path.iterdir() if inner.is_dir() and is_replica(inner))
    if not replicas:
        raise BadRequest(f"{path} is not a partition directory and contains none; name a broker's data directory")
    for inner in replicas:
        segments_of, size_bytes, start, end = 0, 0, None, 0
        for line in replica(inner):
            if isinstance(line, DamagedPart):
                yield DamagedPart(f"{inner.name}/{line.text}")
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


def run_data(path: Path) -> Lines:
    """A run's directory: the replicas of each of its brokers."""
    run = RunDirectory(path)
    kept = [each for each in run.broker_ids() if (run.node(each) / "data").is_dir()]
    if not kept:
        raise BadRequest(
            f"{path} is a run directory without the brokers' data (see --keep); its histories are "
            f"{path / 'history'}/*.arrow"
        )
    for broker_id in kept:
        for line in data_directory(run.node(broker_id) / "data"):
            if isinstance(line, DamagedPart):
                yield DamagedPart(f"broker {broker_id}: {line.text}")
            else:
                yield Entry({"broker": broker_id, **line.fields})


def replica(path: Path) -> Lines:
    """A partition's directory: a line for each segment and for each small file, and what is wrong."""
    logs = sorted(inner for inner in path.iterdir() if inner.suffix == ".log")
    end: int | None = None
    has_holes = False
    for log in logs:
        scanned = Scanned(segments.base_offset_of(log))
        if end is not None and scanned.base_offset < end:
            yield DamagedPart(f"{log.name}: it overlaps the previous segment, which ends at offset {end}")
        yield from _scan(log, scanned)
        yield scanned.summary(log.name)
        has_holes |= scanned.has_holes or (end is not None and scanned.base_offset > end)
        end = scanned.end_offset
    for inner in sorted(path.iterdir()):
        if inner.suffix in (".log", ".index", ".timeindex"):
            continue
        if inner.suffix in (".txnindex", ".snapshot", ".producers"):
            yield Entry({"file": inner.name, "size_bytes": inner.stat().st_size})
        elif not inner.is_dir():
            yield Entry({"file": inner.name, "lines": len(inner.read_bytes().splitlines())})
        yield from _damage_of(inner)
    yield from _beside(path, has_holes=has_holes)


def _scan(log: Path, scanned: Scanned) -> Iterator[DamagedPart]:
    for found in segments.batches(log):
        if isinstance(found, DamagedPart):
            yield DamagedPart(f"{log.name}: {found.text}")
            continue
        position, header, data, good = found
        if header.base_offset < scanned.end_offset:
            text = f"the batch at byte {position} begins at offset {header.base_offset}, expected {scanned.end_offset}"
            yield DamagedPart(f"{log.name}: {text}")
        scanned.add(position, header)
        if good:
            try:
                decode_records(data)
            except ProtocolError as error:
                yield DamagedPart(f"{log.name}: the records of the batch at byte {position} cannot be read: {error}")


def _beside(path: Path, *, has_holes: bool) -> Iterator[DamagedPart]:
    """What the verifier says about the files beside the log; what cannot be read is told line by line elsewhere.

    Compaction removes batches that older snapshots tell about, so that a log with holes cannot be replayed.
    """
    parsed = parse_replica_directory_name(path.name)
    topic, partition = ("", -1) if parsed is None else parsed
    whole = ReplicaDirectory("", -1, topic, partition, str(path))
    for found in check(whole, strict=True):
        if found.cause == "unreadable" or (found.cause == "missing" and not is_clean(whole)):
            continue
        if parsed is None and found.file in OFFSET_FILES:
            continue
        if has_holes and found.check == SNAPSHOT and found.cause in ("entry", "lacks", "stranger"):
            continue
        more = f" (and {found.places - 1} more)" if found.places > 1 else ""
        yield DamagedPart(f"{found.file}: {found.problem}{more}")


def _damage_of(path: Path) -> Iterator[DamagedPart]:
    try:
        lines = list(files.lines_of(path, with_records=False))
    except BadRequest:
        yield DamagedPart(f"{path.name}: no file of a log has that name")
        return
    yield from (DamagedPart(f"{path.name}: {line.text}") for line in lines if isinstance(line, DamagedPart))
