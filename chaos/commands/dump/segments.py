"""The files of a log, entry by entry: batches and records, the three indexes, the snapshots of producer state.

Owns how they are shown, and that a damaged file is read as far as it is good. Does not own the formats
(``cluster.protocol``, ``cluster.log``), nor whether files agree with each other (``replica_agreement``).
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from chaos.commands.dump.entries import DamagedPart, Entry, Lines, readable
from chaos.commands.dump.pieces import PIECE_BYTES, crc_of, entries, forget, is_zero_from
from cluster.log.errors import CheckpointError
from cluster.log.index import OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES, OffsetIndex, TimeIndex
from cluster.log.producer_snapshot import parse_snapshot
from cluster.log.sequence import ProducerEntry
from cluster.log.snapshots import parse_histories
from cluster.protocol.batch import CRC_AT, CRC_FROM, BatchHeader, parse_header
from cluster.protocol.compression import MAX_UNCOMPRESSED_BYTES
from cluster.protocol.errors import CorruptBatch, ProtocolError
from cluster.protocol.records import Record, decode_records
from verifier.evidence.bounded import size_of, whole
from verifier.evidence.sequenced_value import decode

#: version, producer id, first offset, last offset (the marker's), last stable offset (Kafka's AbortedTxn)
_ABORTED = struct.Struct(">hqqqq")
_CONTROL_KEY = struct.Struct(">hh")
_COORDINATOR_EPOCH = struct.Struct(">hi")
_CONTROL_TYPES = {0: "ABORT", 1: "COMMIT", 2: "LEADER_CHANGE", 3: "SNAPSHOT_HEADER", 4: "SNAPSHOT_FOOTER"}
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_CRC = struct.Struct(">I")
_BASE_OFFSET = re.compile(r"(\d{20})\.")

#: The size limit for a snapshot: enough for hundreds of thousands of producers.
MOST_SNAPSHOT_BYTES = 64 << 20


def base_offset_of(path: Path) -> int:
    """The offset that a file of a log is named after. Raises ``ValueError``."""
    match = _BASE_OFFSET.match(path.name)
    if match is None:
        raise ValueError(
            "its name does not begin with the 20 digits of a base offset, to which its entries are relative"
        )
    return int(match[1])


def batches(path: Path) -> Iterator[tuple[int, BatchHeader, memoryview, bool] | DamagedPart]:
    """(position, header, bytes, whether the checksum holds) of each batch of a segment, and what is wrong.

    The bytes are those of the file, and in memory only once someone looks at them. Raises ``OSError``.
    """
    size = size_of(path)
    if not size:
        return
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        data = memoryview(mapped)
        position = forgotten = 0
        while position < size:
            rest = size - position
            try:
                header = parse_header(data, position)
            except ProtocolError as error:
                if is_zero_from(path, position):
                    yield DamagedPart(f"{rest} zero bytes from byte {position} on")
                else:
                    yield DamagedPart(f"{rest} bytes from byte {position} on are not a batch: {error}")
                return
            if header.size_bytes > rest:
                yield DamagedPart(
                    f"torn tail: the batch at byte {position} has {header.size_bytes} bytes, but only {rest} are left"
                )
                return
            good = _CRC.unpack_from(data, position + CRC_AT)[0] == crc_of(
                mapped, data, position + CRC_FROM, position + header.size_bytes
            )
            yield position, header, data[position : position + header.size_bytes], good
            if not good:
                offsets = f"{header.base_offset}..{header.last_offset}"
                yield DamagedPart(f"the checksum of the batch at byte {position} (offsets {offsets}) is wrong")
            position += header.size_bytes
            if position - forgotten > PIECE_BYTES:
                forgotten = forget(mapped, forgotten, position)


def segment(path: Path, *, with_records: bool) -> Lines:
    """A ``.log``: its batches, with their records if that is asked for."""
    for found in batches(path):
        if isinstance(found, DamagedPart):
            yield found
            continue
        position, header, data, good = found
        yield Entry(_batch(position, header, good), (header.base_offset, header.last_offset))
        if with_records and good:
            try:
                records = records_of(data)
            except ProtocolError as error:
                yield DamagedPart(f"the records of the batch at byte {position} cannot be read: {error}")
                continue
            for record in records:
                yield Entry(_record(record, header), (record.offset, record.offset), depth=1)


def records_of(data: memoryview) -> list[Record]:
    """The records of a batch. Raises ``ProtocolError``, also if they are too large to be read."""
    if len(data) > MAX_UNCOMPRESSED_BYTES:
        raise CorruptBatch(f"{len(data):,} bytes; at most {MAX_UNCOMPRESSED_BYTES:,} are read")
    return decode_records(data)


def _batch(position: int, header: BatchHeader, good: bool) -> dict[str, object]:
    fields: dict[str, object] = {
        "position": position,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.record_count,
        "leader_epoch": header.leader_epoch,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "codec": _CODECS[header.codec] if header.codec < len(_CODECS) else header.codec,
        "timestamp_type": "LogAppendTime" if header.is_log_append_time else "CreateTime",
        "max_timestamp": header.max_timestamp,
        "size_bytes": header.size_bytes,
        "crc_ok": good,
    }
    if header.is_transactional:
        fields["transactional"] = True
    if header.is_control:
        fields["control"] = True
    return fields


def _record(record: Record, header: BatchHeader) -> dict[str, object]:
    fields: dict[str, object] = {"offset": record.offset, "timestamp": record.timestamp}
    if header.is_control:
        return fields | _control(record)
    fields["key"] = readable(record.key)
    value = decode(record.value) if record.value is not None else None
    if value is None:
        fields["value"] = readable(record.value)
    else:
        # a value of gapless's load, whose padding has no meaning
        fields |= {"run": value.run_id, "stream": value.stream_id, "sequence": value.sequence}
        fields |= {"sent_ns": value.send_time_ns, "value_bytes": value.size_bytes}
        if value.is_sentinel:
            fields["sentinel"] = True
    if record.headers:
        fields["headers"] = {name: readable(inner) for name, inner in record.headers}
    return fields


def _control(record: Record) -> dict[str, object]:
    """A control record's type and, for an end-of-transaction marker, the coordinator's epoch (EndTransactionMarker)."""
    if record.key is None or len(record.key) < _CONTROL_KEY.size:
        return {"control": "unknown", "key": readable(record.key), "value": readable(record.value)}
    kind = _CONTROL_KEY.unpack_from(record.key)[1]
    fields: dict[str, object] = {"control": _CONTROL_TYPES.get(kind, kind)}
    if kind in (0, 1) and record.value is not None and len(record.value) >= _COORDINATOR_EPOCH.size:
        fields["coordinator_epoch"] = _COORDINATOR_EPOCH.unpack_from(record.value)[1]
    else:
        fields["value"] = readable(record.value)
    return fields


def offset_index(path: Path) -> Lines:
    """An ``.index``."""
    base_offset = base_offset_of(path)
    for piece in entries(path, OFFSET_ENTRY_BYTES):
        if isinstance(piece, DamagedPart):
            yield piece
            continue
        for offset, position in OffsetIndex.parse(piece, base_offset):
            yield Entry({"offset": offset, "position": position}, (offset, offset))


def time_index(path: Path) -> Lines:
    """A ``.timeindex``."""
    base_offset = base_offset_of(path)
    for piece in entries(path, TIME_ENTRY_BYTES):
        if isinstance(piece, DamagedPart):
            yield piece
            continue
        for timestamp, offset in TimeIndex.parse(piece, base_offset):
            yield Entry({"timestamp": timestamp, "offset": offset}, (offset, offset))


def aborted_transactions(path: Path) -> Lines:
    """A ``.txnindex``."""
    at = 0
    for piece in entries(path, _ABORTED.size):
        if isinstance(piece, DamagedPart):
            yield piece
            continue
        for version, producer_id, first, last, stable in _ABORTED.iter_unpack(piece):
            if version != 0:
                yield DamagedPart(f"the entry at byte {at} has version {version}, only 0 is supported")
                return
            at += _ABORTED.size
            fields = {"producer_id": producer_id, "first_offset": first, "last_offset": last}
            yield Entry({**fields, "last_stable_offset": stable}, (first, last))


def snapshot(path: Path) -> Lines:
    """A ``.snapshot``: its producers; it has one checksum, so damage anywhere is damage of the whole."""
    try:
        producers = parse_snapshot(whole(path, MOST_SNAPSHOT_BYTES))
    except CheckpointError as error:
        yield DamagedPart(str(error))
        return
    yield from _producers(producers)


def histories(path: Path) -> Lines:
    """A ``.producers``: the leader epoch of the record before it, then all that is known of each producer."""
    try:
        leader_epoch, producers = parse_histories(whole(path, MOST_SNAPSHOT_BYTES))
    except CheckpointError as error:
        yield DamagedPart(str(error))
        return
    yield Entry({"leader_epoch": leader_epoch, "producers": len(producers)})
    yield from _producers(producers, in_full=True)


def _producers(producers: Iterable[ProducerEntry], *, in_full: bool = False) -> Lines:
    for entry in producers:
        newest = entry.batches[-1] if entry.batches else None
        yield Entry(
            {
                "producer_id": entry.producer_id,
                "producer_epoch": entry.producer_epoch,
                "last_sequence": -1 if newest is None else newest.last_sequence,
                "first_offset": -1 if newest is None else newest.base_offset,
                "last_offset": -1 if newest is None else newest.last_offset,
                "last_timestamp": entry.last_timestamp,
                **({"coordinator_epoch": entry.coordinator_epoch} if entry.coordinator_epoch >= 0 else {}),
                **({"transaction_first_offset": entry.txn_first_offset} if entry.txn_first_offset >= 0 else {}),
                **({"batches": len(entry.batches), "complete": entry.complete} if in_full else {}),
            }
        )
