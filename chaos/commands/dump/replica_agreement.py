"""Whether the files of a replica agree with each other: what Kafka's DumpLogSegments does with --verify-index-only and
--deep-iteration, for all segments of a directory at once.

Owns the walk through a directory: every checksum, that offsets ascend, the records of every batch, and that the small
files can be read. What indexes, checkpoints and snapshots must be is the verifier's (``verifier.files``), which reads
their bytes by itself. A live broker may be between two writes: what is wrong at its very end may be right a moment
later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from chaos.commands.dump import files, segments
from chaos.commands.dump.entries import DamagedPart, Entry, Lines
from chaos.exits import BadRequest
from cluster.log.data_directory import is_going_away, parse_replica_directory_name
from cluster.protocol.batch import BatchHeader
from cluster.protocol.errors import ProtocolError
from verifier.evidence.bounded import NotRead, lines, size_of
from verifier.evidence.run_directory import RunDirectory
from verifier.files.checkpoints import OFFSET_FILES
from verifier.files.model import SNAPSHOT
from verifier.files.replica import ReplicaDirectory, check, is_clean

#: The suffixes of a segment's indexes, which have its base name.
_INDEXES = (".index", ".timeindex")
#: The suffix of a directory that no broker serves -> what it is.
_PASSING = {"delete": "being deleted", "future": "a future replica", "stray": "a stray replica"}


@dataclass(slots=True)
class Scanned:
    """A summary of the batches of one segment, with constant memory for a segment of any size."""

    base_offset: int
    end_offset: int
    batches: int = 0
    records: int = 0
    size_bytes: int = 0
    max_timestamp: int = -1
    epochs: tuple[int, int] | None = None
    has_holes: bool = False

    def add(self, position: int, header: BatchHeader) -> None:
        """Add a batch. Offsets that are missing between batches are holes of compaction."""
        self.has_holes |= self.batches > 0 and header.base_offset != self.end_offset
        self.max_timestamp = max(self.max_timestamp, header.max_timestamp) if self.batches else header.max_timestamp
        lowest, highest = self.epochs or (header.leader_epoch, header.leader_epoch)
        self.epochs = min(lowest, header.leader_epoch), max(highest, header.leader_epoch)
        self.batches += 1
        self.records += header.record_count
        self.size_bytes = position + header.size_bytes
        self.end_offset = header.last_offset + 1

    def summary(self, name: str) -> Entry:
        return Entry(
            {
                "segment": name,
                "base_offset": self.base_offset,
                "end_offset": self.end_offset,
                "batches": self.batches,
                "records": self.records,
                "size_bytes": self.size_bytes,
                "max_timestamp": self.max_timestamp,
                "epochs": None if self.epochs is None else f"{self.epochs[0]}..{self.epochs[1]}",
            }
        )


def is_replica(path: Path) -> bool:
    """Whether a directory has the log of a partition, and not another ``.log`` such as runs and brokers write."""
    segments_there = any(each.stem.isdecimal() for each in path.glob("*.log"))
    return segments_there or parse_replica_directory_name(path.name) is not None


def replicas_in(path: Path) -> tuple[list[Path], list[Path]]:
    """The replicas in a data directory, and the directories that no broker serves and that are not checked."""
    inside = sorted(inner for inner in path.iterdir() if inner.is_dir())
    passing = [inner for inner in inside if is_going_away(inner.name)]
    return [inner for inner in inside if inner not in passing and is_replica(inner)], passing


def data_directory(path: Path) -> Lines:
    """A broker's data directory: its replicas one line each, and what is wrong with any of them."""
    replicas, passing = replicas_in(path)
    if not replicas and not passing:
        raise BadRequest(f"{path} is not a partition directory and contains none; name a broker's data directory")
    for inner in replicas:
        segments_of, size_bytes = 0, 0
        start, end = None, 0
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
    for inner in passing:
        yield Entry({"directory": inner.name, "skipped": _PASSING[inner.name.rpartition("-")[2]]})
    for inner in sorted(path.iterdir()):
        if not inner.is_dir() and inner.name != ".lock":
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
    has_holes, are_readable = False, True
    for log in logs:
        base_offset = segments.base_offset_of(log)
        scanned = Scanned(base_offset, base_offset)
        if end is not None and scanned.base_offset < end:
            yield DamagedPart(f"{log.name}: it overlaps the previous segment, which ends at offset {end}")
        try:
            yield from _scan(log, scanned)
        except NotRead as error:
            are_readable = False
            yield DamagedPart(f"{log.name}: {error}")
            continue
        yield scanned.summary(log.name)
        has_holes |= scanned.has_holes or (end is not None and scanned.base_offset > end)
        end = scanned.end_offset
    for inner in sorted(path.iterdir()):
        if inner.suffix not in (".log", *_INDEXES):
            yield from _small_file(inner)
    if not is_going_away(path.name):
        yield from _without_segment(path, logs)
    if are_readable and not is_going_away(path.name):
        # a replica that is going away was not closed properly, so its indexes and snapshots lag behind
        yield from _beside(path, has_holes=has_holes)


def _without_segment(path: Path, logs: Sequence[Path]) -> Iterator[DamagedPart]:
    """A log has a segment from its first moment, and an index is one of a segment: where that is gone, nothing else
    is left to compare the small files with, and it would pass for a hole that compaction made."""
    if not logs:
        yield DamagedPart("segments: none found, but every log has at least one")
    stems = {log.stem for log in logs}
    for inner in sorted(path.iterdir()):
        if inner.suffix in _INDEXES and inner.stem.isdecimal() and inner.stem not in stems:
            yield DamagedPart(f"{inner.name}: the segment {inner.stem}.log, which it belongs to, is missing")


def _small_file(path: Path) -> Lines:
    try:
        if path.suffix in (".txnindex", ".snapshot", ".producers"):
            yield Entry({"file": path.name, "size_bytes": size_of(path)})
        elif not path.is_dir():
            yield Entry({"file": path.name, "lines": sum(1 for _ in lines(path))})
    except NotRead:
        pass  # it is damage, as which it is told below
    yield from _damage_of(path)


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
                segments.records_of(data)
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
        for line in files.lines_of(path, with_records=False):
            if isinstance(line, DamagedPart):
                yield DamagedPart(f"{path.name}: {line.text}")
    except BadRequest:
        yield DamagedPart(f"{path.name}: no file of a log has that name")
    except NotRead as error:
        yield DamagedPart(f"{path.name}: {error}")
