"""Records inside a batch, packed and unpacked: the broker's cold path (probes, compaction, dump), a reader's hot one.

Owns the record's layout (Kafka's DefaultRecord; docs/reference/kafka.md "Record") and building whole batches with
header and checksum. The broker's hot path never comes here: it stores and sends batches as they are.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from crc32c import crc32c

from cluster.protocol.batch import (
    CODEC_NONE,
    CONTROL_BIT,
    HEADER_BYTES,
    MAGIC,
    MIN_BATCH_LENGTH,
    TRANSACTIONAL_BIT,
    BatchHeader,
    crc_ok,
    parse_header,
)
from cluster.protocol.compression import MAX_UNCOMPRESSED_BYTES, compress, decompress
from cluster.protocol.errors import CorruptBatch
from cluster.protocol.primitives import Buffer

Header = tuple[str, bytes | None]


class NewRecord(NamedTuple):
    """A record to be packed. ``timestamp`` is milliseconds since the epoch."""

    timestamp: int
    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[Header] = ()


class Record(NamedTuple):
    """A record as it is in the log; ``timestamp`` as in ``NewRecord``."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


#: The fields of ``Record`` in its order, before it is one.
RecordFields = tuple[int, int, bytes | None, bytes | None, tuple[Header, ...]]
#: The same as calling the class, which costs a call more for every record.
_new_record: Callable[[RecordFields], Record] = partial(tuple.__new__, Record)

_TO_CRC = struct.Struct(">qiibI")
_FROM_ATTRIBUTES = struct.Struct(">hiqqqhii")
#: A record has at least: attributes, two deltas, three lengths.
_LEAST_RECORD_BYTES = 7
#: -1 as a varint: the length of what is null.
_NULL = 1


def build_batch(
    records: Iterable[NewRecord],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    codec: int = CODEC_NONE,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
) -> bytes:
    """One record batch, with offset deltas from 0. Raises ``ValueError`` if there is no record."""
    items = list(records)
    if not items:
        raise ValueError("a batch has at least one record")
    base_timestamp = items[0].timestamp
    payload = compress(codec, b"".join(pack_record(item, index, base_timestamp) for index, item in enumerate(items)))
    return seal_batch(
        payload,
        attributes=codec | (TRANSACTIONAL_BIT if transactional else 0) | (CONTROL_BIT if control else 0),
        record_count=len(items),
        base_timestamp=base_timestamp,
        max_timestamp=max(item.timestamp for item in items),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
    )


def seal_batch(
    payload: Buffer,
    *,
    attributes: int,
    record_count: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """Records that are packed, and compressed if ``attributes`` say so, with their header and checksum before them."""
    checked = _FROM_ATTRIBUTES.pack(
        attributes,
        record_count - 1,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    length = MIN_BATCH_LENGTH + len(payload)
    crc = crc32c(payload, crc32c(checked))
    return b"".join((_TO_CRC.pack(base_offset, length, leader_epoch, MAGIC, crc), checked, payload))


def decode_records(batch: Buffer, limit_bytes: int = MAX_UNCOMPRESSED_BYTES) -> list[Record]:
    """All records of one whole batch (``batch`` may continue after it).

    Raises ``CorruptBatch`` if the checksum does not hold or anything inside does not add up.
    """
    header = parse_header(batch)
    size = header.size_bytes
    if not crc_ok(batch, 0, size):
        raise CorruptBatch("the checksum of the batch is wrong")
    return list(map(_new_record, unpack_records(header, memoryview(batch)[HEADER_BYTES:size], limit_bytes)))


def unpack_records(
    header: BatchHeader, packed: Buffer, limit_bytes: int = MAX_UNCOMPRESSED_BYTES
) -> list[RecordFields]:
    """The fields of all records of one batch, as in ``Record``; ``packed`` is what follows its header, no more.

    Raises ``CorruptBatch`` like ``decode_records``, but does not look at the checksum.
    """
    data = decompress(header.codec, packed, limit_bytes)
    if header.record_count < 0 or header.record_count * _LEAST_RECORD_BYTES > len(data):
        raise CorruptBatch(f"{header.record_count} records in {len(data)} bytes")
    found: list[RecordFields] = []
    try:
        position = _unpack_all(data, header, found)
    except (IndexError, UnicodeDecodeError) as error:
        raise CorruptBatch(f"record {len(found)}: {error}") from error
    if position != len(data):
        raise CorruptBatch(f"{len(data) - position} bytes after the last record")
    return found


def _unpack_all(data: bytes, header: BatchHeader, found: list[RecordFields]) -> int:
    """Append the fields of every record to ``found``. Returns where the last one ends.

    Numbers of one byte, and of two where they are likely, are read without a call: half the time of a reader. A length
    that reaches too far is found at the record's end.
    """
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    append_time = header.max_timestamp if header.is_log_append_time else None
    total = len(data)
    position = 0
    for _ in range(header.record_count):
        byte, second = data[position], data[position + 1]
        if byte >= 0x80 > second:
            size = (byte & 0x7F | second << 7) >> 1 if not byte & 1 else -1
            position += 2
        else:
            size, position = read_varint(data, position)
        end = position + size
        if size < _LEAST_RECORD_BYTES - 1 or end > total:
            raise CorruptBatch(f"a record of {size} bytes where {total - position} are left")
        # Attributes are unused, and skipped.
        byte = data[position + 1]
        if byte < 0x80:
            timestamp = base_timestamp + (byte >> 1 ^ -(byte & 1))
            position += 2
        else:
            delta, position = read_varint(data, position + 1)
            timestamp = base_timestamp + delta
        byte, second = data[position], data[position + 1]
        if byte < 0x80:
            offset = base_offset + (byte >> 1 ^ -(byte & 1))
            position += 1
        elif second < 0x80 and not byte & 1:
            offset = base_offset + ((byte & 0x7F | second << 7) >> 1)
            position += 2
        else:
            delta, position = read_varint(data, position)
            offset = base_offset + delta
        key: bytes | None = None
        if data[position] == _NULL:
            position += 1
        else:
            key, position = _unpack_bytes(data, position, end)
        byte, second = data[position], data[position + 1]
        if byte >= 0x80 > second and not byte & 1:
            position += 2
            begin, position = position, position + ((byte & 0x7F | second << 7) >> 1)
            value: bytes | None = data[begin:position]
        else:
            value, position = _unpack_bytes(data, position, end)
        headers: tuple[Header, ...] = ()
        if position < end and data[position] == 0:
            position += 1
        else:
            headers, position = _unpack_headers(data, position, end)
        if position != end:
            raise CorruptBatch(f"a record ends {end - position} bytes off")
        found.append((offset, timestamp if append_time is None else append_time, key, value, headers))
    return position


def pack_record(record: NewRecord | Record, offset_delta: int, base_timestamp: int) -> bytes:
    """One record with its length (Kafka's DefaultRecord)."""
    body = bytearray(b"\x00")
    body += write_varint(record.timestamp - base_timestamp)
    body += write_varint(offset_delta)
    body += _pack_bytes(record.key)
    body += _pack_bytes(record.value)
    body += write_varint(len(record.headers))
    for key, value in record.headers:
        body += _pack_bytes(key.encode())
        body += _pack_bytes(value)
    return write_varint(len(body)) + bytes(body)


def _pack_bytes(data: bytes | None) -> bytes:
    return write_varint(-1) if data is None else write_varint(len(data)) + data


def _unpack_headers(data: bytes, position: int, end: int) -> tuple[tuple[Header, ...], int]:
    count, position = read_varint(data, position)
    if count < 0 or count > end - position:
        raise CorruptBatch(f"{count} headers in {end - position} bytes")
    headers: list[Header] = []
    for _ in range(count):
        name, position = _unpack_bytes(data, position, end)
        if name is None:
            raise CorruptBatch("a header without a key")
        content, position = _unpack_bytes(data, position, end)
        headers.append((name.decode(), content))
    return tuple(headers), position


def _unpack_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    size, position = read_varint(data, position)
    if size == -1:
        return None, position
    if size < 0 or position + size > end:
        raise CorruptBatch(f"{size} bytes where {end - position} are left")
    return data[position : position + size], position + size


def write_varint(value: int) -> bytes:
    """A signed varint of up to 64 bits (zig-zag, then LEB128), as records alone use it."""
    value = value << 1 ^ value >> 63
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: Buffer, position: int) -> tuple[int, int]:
    """The value of ``write_varint`` and the next position. Raises ``CorruptBatch`` beyond ten bytes."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise CorruptBatch("a varint longer than ten bytes")
    return value >> 1 ^ -(value & 1), position
