"""From a segment file to Arrow rows: what the verifier's tables are made of. Owns the columns, no judgment.

Three kinds of row in one schema, so that a file is read once:

- ``file``: one per segment, last. ``size_bytes`` of the file, ``position`` where the walk ended, ``next_offset``
  expected there, ``record_count`` batches seen, ``problem`` the tail (``torn`` or ``garbage``) or null.
- ``batch``: one per batch, with its header fields (``base_timestamp`` and ``max_timestamp`` in ms, here alone);
  ``problem`` says what is wrong with it.
- ``span``: consecutive sequences of one stream at consecutive offsets of one batch, with the batch's fields beside;
  none where only batches are asked for (``SegmentFile.values``).
  ``sent_ns`` is when the first of them was sent, by its own header; null if that header cannot be believed.
  A value that cannot be told has ``stream`` null. ``value_problem``: ``payload`` (the value's own checksums fail;
  the stream is given when its header is intact), ``foreign`` (not a sequenced value), ``run`` (another run's).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from verifier.segments import walk
from verifier.segments.value_spans import NO_SPANS, VALUE_PROBLEMS, BatchChunk, find_spans

#: Values of a column, and where it is null.
MaskedColumn = tuple[NDArray[Any], NDArray[np.bool_] | None]

#: Batches are decoded together up to this many bytes, so that a segment of any size needs bounded memory.
CHUNK_BYTES = 32 << 20

#: Name and type of every column, in Spark's words; Arrow's follow from them.
COLUMNS = {
    "run": "string",
    "kind": "string",
    "broker": "int",
    "topic": "string",
    "partition": "int",
    "segment": "bigint",
    "position": "bigint",
    "size_bytes": "bigint",
    "base_offset": "bigint",
    "next_offset": "bigint",
    "leader_epoch": "int",
    "attributes": "int",
    "crc": "bigint",
    "crc_ok": "boolean",
    "producer_id": "bigint",
    "producer_epoch": "int",
    "base_sequence": "int",
    "record_count": "int",
    "base_timestamp": "bigint",
    "max_timestamp": "bigint",
    "problem": "string",
    "first_offset": "bigint",
    "last_offset": "bigint",
    "stream": "bigint",
    "first_sequence": "bigint",
    "last_sequence": "bigint",
    "sentinel": "boolean",
    "value_problem": "string",
    "sent_ns": "bigint",
}
_ARROW: dict[str, pa.DataType] = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
}
SCHEMA = pa.schema([pa.field(name, _ARROW[kind]) for name, kind in COLUMNS.items()])

_PARTITION_DIRECTORY = re.compile(r"^(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)$")
_PARTITION_DIGITS = 10
_SEGMENT_FILE = re.compile(r"^\d{20}\.log$")


class SegmentFile(NamedTuple):
    """One ``.log`` file of one replica. ``run`` names the run, so that several can be judged in one job.

    ``values``: whether its records are decoded. Only the final leader's are judged as values; of other replicas every
    batch is compared with the leader's by its CRC, which covers all records.
    """

    run: str
    run_id: int
    broker: int
    topic: str
    partition: int
    base_offset: int
    path: str
    values: bool = True


def find_segments(run: str, run_id: int, broker: int, node_directory: Path) -> list[SegmentFile]:
    """All segments below a broker's directory, wherever its data lies. Directories being deleted are left out.

    Raises ``ValueError`` for the name of a number that neither a partition nor an offset can have.
    """
    found = []
    for path in sorted(node_directory.rglob("*.log")):
        directory = _PARTITION_DIRECTORY.match(path.parent.name)
        if directory and _SEGMENT_FILE.match(path.name):
            partition, base_offset = int(directory["partition"][:_PARTITION_DIGITS]), int(path.stem)
            if len(directory["partition"]) > _PARTITION_DIGITS or partition >= 1 << 31:
                raise ValueError(f"{path.parent}: the number of its partition is beyond 32 bits and its sign")
            if base_offset >= 1 << 63:
                raise ValueError(f"{path}: the offset in its name is beyond 64 bits and its sign")
            found.append(SegmentFile(run, run_id, broker, directory["topic"], partition, base_offset, str(path)))
    return found


def read_segment(segment: SegmentFile, chunk_bytes: int = CHUNK_BYTES) -> Iterator[pa.RecordBatch]:
    """The rows of one segment, in the order of the file. Raises ``OSError``."""
    data = walk.open_segment(segment.path)
    found = walk.walk(data)
    next_offset = segment.base_offset
    for first, last in _chunks(found.sizes, chunk_bytes):
        positions, sizes = found.positions[first:last], found.sizes[first:last]
        fields = walk.headers(data, positions)
        crc_ok = walk.check_crcs(data, positions, sizes, fields["crc"])
        next_offset = int(fields["base_offset"][-1]) + int(fields["last_offset_delta"][-1]) + 1
        problems = walk.problems(fields, crc_ok)
        yield _chunk_rows(segment, BatchChunk(data, positions, sizes, fields, crc_ok, problems))
    yield _file_row(segment, data.size, found, next_offset)


def _chunks(sizes: NDArray[np.int64], chunk_bytes: int) -> Iterator[tuple[int, int]]:
    """Ranges of batches whose bytes sum to about ``chunk_bytes``, at least one batch each."""
    ends = np.cumsum(sizes)
    first = 0
    while first < sizes.size:
        start = int(ends[first]) - int(sizes[first])
        last = max(first + 1, int(np.searchsorted(ends, start + chunk_bytes, side="right")))
        yield first, last
        first = last


def _chunk_rows(segment: SegmentFile, chunk: BatchChunk) -> pa.RecordBatch:
    found = find_spans(segment.run_id, chunk) if segment.values else NO_SPANS
    count = chunk.positions.size
    # the batch rows, then the span rows: ``owner`` is the batch whose fields a row has
    owner = np.concatenate([np.arange(count, dtype=np.int64), found.batch])
    of_batches = np.arange(owner.size) < count
    unknown = np.concatenate([np.ones(count, dtype=np.bool_), found.stream < 0])
    next_offset = chunk.fields["base_offset"].astype(np.int64) + chunk.fields["last_offset_delta"] + 1

    def of_batch(name: str) -> MaskedColumn:
        values = np.zeros(owner.size, dtype=np.int64)
        values[:count] = chunk.fields[name]
        return values, ~of_batches

    def of_span(column: NDArray[Any], missing: NDArray[np.bool_]) -> MaskedColumn:
        return np.concatenate([np.zeros(count, dtype=column.dtype), column]), missing

    columns: dict[str, MaskedColumn] = {
        name: (chunk.fields[name].astype(np.int64)[owner], None)
        for name in (
            "base_offset", "leader_epoch", "attributes", "crc", "producer_id", "producer_epoch", "base_sequence",
            "record_count",
        )
    }  # fmt: skip
    columns |= {
        "kind": (np.where(of_batches, "batch", "span").astype(object), None),
        "position": (chunk.positions[owner], None),
        "size_bytes": (chunk.sizes[owner], None),
        "next_offset": (next_offset[owner], None),
        "crc_ok": (chunk.crc_ok[owner], None),
        "problem": (np.array(chunk.problems, dtype=object)[owner], None),
        "base_timestamp": of_batch("base_timestamp"),
        "max_timestamp": of_batch("max_timestamp"),
        "first_offset": of_span(found.first_offset, of_batches),
        "last_offset": of_span(found.last_offset, of_batches),
        "stream": of_span(found.stream, unknown),
        "first_sequence": of_span(found.first_sequence, unknown),
        "last_sequence": of_span(found.last_sequence, unknown),
        "sentinel": of_span(found.sentinel, of_batches),
        "value_problem": of_span(np.array(VALUE_PROBLEMS, dtype=object)[found.problem], of_batches),
        "sent_ns": of_span(found.sent_ns, np.concatenate([np.ones(count, dtype=np.bool_), found.problem != 0])),
    }
    return _record_batch(segment, owner.size, columns)


def _file_row(segment: SegmentFile, size_bytes: int, found: walk.Walk, next_offset: int) -> pa.RecordBatch:
    columns: dict[str, MaskedColumn] = {
        "kind": (np.array(["file"], dtype=object), None),
        "position": (np.array([found.tail_position]), None),
        "size_bytes": (np.array([size_bytes]), None),
        "next_offset": (np.array([next_offset]), None),
        "record_count": (np.array([found.positions.size]), None),
        "problem": (np.array([found.tail or None], dtype=object), None),
    }
    return _record_batch(segment, 1, columns)


def _record_batch(segment: SegmentFile, rows: int, columns: dict[str, MaskedColumn]) -> pa.RecordBatch:
    """Rows of one segment; columns that are not given are null."""
    whose = {
        "run": segment.run,
        "broker": segment.broker,
        "topic": segment.topic,
        "partition": segment.partition,
        "segment": segment.base_offset,
    }
    arrays: list[Any] = []
    for field in SCHEMA:
        if field.name in whose:
            arrays.append(pa.repeat(pa.scalar(whose[field.name], field.type), rows))
        elif field.name in columns:
            values, missing = columns[field.name]
            arrays.append(pa.array(values, field.type, mask=missing))
        else:
            arrays.append(pa.nulls(rows, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
