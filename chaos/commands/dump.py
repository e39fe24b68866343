"""``gapless dump``: a file of a broker or of a run, readable. Owns which reader a file name asks for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from chaos.exits import BadRequest, Exit
from cluster.log.index import OffsetIndex, TimeIndex
from cluster.log.producers import parse_snapshot
from cluster.protocol.batch import BatchHeader, crc_ok, iter_batches
from cluster.protocol.errors import ProtocolError
from cluster.protocol.records import decode_records
from verifier.evidence.history import HistoryError, read_history
from verifier.evidence.values import decode


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("dump", help="Print a segment, index, snapshot, checkpoint or history, one line an entry.")(dump)


def dump(
    path: Annotated[Path, typer.Argument(help="The file.")],
    records: Annotated[bool, typer.Option("--records", help="Of a segment: every record too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> int:
    """Print the file."""
    try:
        for entry in _entries(path, records):
            print(json.dumps(entry) if as_json else "  ".join(f"{key}={value}" for key, value in entry.items()))
    except OSError as error:
        raise BadRequest(f"{path} cannot be read: {error.strerror}") from error
    except (ProtocolError, HistoryError, ValueError) as error:
        raise BadRequest(f"{path} is damaged: {error}") from error
    return int(Exit.VALID)


def _entries(path: Path, records: bool) -> Iterator[dict[str, object]]:
    if path.suffix == ".log":
        return _segment(path.read_bytes(), records)
    readers: dict[str, Callable[[Path], Iterator[dict[str, object]]]] = {
        ".index": _index,
        ".timeindex": _time_index,
        ".snapshot": _snapshot,
        ".arrow": _history,
    }
    reader = readers.get(path.suffix)
    if reader is not None:
        return reader(path)
    if path.name.endswith("checkpoint") or path.name in ("partition.metadata", "meta.properties"):
        return ({"line": line} for line in path.read_text(encoding="utf-8").splitlines())
    known = ".log, .index, .timeindex, .snapshot, .arrow, *checkpoint, partition.metadata, meta.properties"
    raise BadRequest(f"{path}: nothing here reads that name; there are {known}")


def _segment(data: bytes, records: bool) -> Iterator[dict[str, object]]:
    end = 0
    for position, header in iter_batches(data):
        end = position + header.size_bytes
        yield {"position": position, **_batch(header), "crc_ok": crc_ok(data, position, header.size_bytes)}
        if not records:
            continue
        for record in decode_records(data[position:end]):
            value = decode(record.value) if record.value is not None else None
            what: object = len(record.value) if record.value is not None else None
            entry: dict[str, object] = {"  offset": record.offset, "timestamp": record.timestamp, "value_bytes": what}
            if value is not None:
                entry |= {"stream": value.stream_id, "sequence": value.sequence}
            yield entry
    if end < len(data):
        yield {"position": end, "torn_bytes": len(data) - end}


def _batch(header: BatchHeader) -> dict[str, object]:
    return {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.record_count,
        "leader_epoch": header.leader_epoch,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "codec": ("none", "gzip", "snappy", "lz4", "zstd")[header.codec] if header.codec < 5 else header.codec,
        "max_timestamp": header.max_timestamp,
        "size_bytes": header.size_bytes,
    }


def _index(path: Path) -> Iterator[dict[str, object]]:
    for offset, position in OffsetIndex.parse(path.read_bytes(), int(path.stem)):
        yield {"offset": offset, "position": position}


def _time_index(path: Path) -> Iterator[dict[str, object]]:
    for timestamp, offset in TimeIndex.parse(path.read_bytes(), int(path.stem)):
        yield {"timestamp": timestamp, "offset": offset}


def _snapshot(path: Path) -> Iterator[dict[str, object]]:
    for entry in parse_snapshot(path.read_bytes()):
        newest = entry.batches[-1] if entry.batches else None
        yield {
            "producer_id": entry.producer_id,
            "producer_epoch": entry.producer_epoch,
            "last_sequence": -1 if newest is None else newest.last_sequence,
            "last_offset": -1 if newest is None else newest.last_offset,
        }


def _history(path: Path) -> Iterator[dict[str, object]]:
    yield from read_history(path).to_pylist()
