"""What a broker checks inside a producer's batch: row 14 of docs/produce-checks.md, and what 15 and 16 need.

Owns the walk over records, without taking keys and values out of them. Does not own the checks that the header alone
answers (``batch``), nor which topics need keys or bound timestamps. The hot path does not come here: only compressed
batches, those for compacted topics and those whose timestamps are bounded are looked into.
"""

from __future__ import annotations

from typing import NamedTuple

from cluster.protocol.batch import HEADER_BYTES, BatchHeader
from cluster.protocol.compression import MAX_UNCOMPRESSED_BYTES, decompress
from cluster.protocol.errors import CorruptBatch, ErrorCode, InvalidBatch
from cluster.protocol.primitives import Buffer
from cluster.protocol.records import read_varint

#: More records than any client sends at once: to walk over them holds up everybody else.
MAX_RECORDS = 500_000
#: A record has at least: length, attributes, two deltas, three lengths.
_LEAST_RECORD_BYTES = 7
#: -1 as a varint: the length of what is null.
_NULL = 1


class RecordFacts(NamedTuple):
    """What the walk found. Times are milliseconds, -1 for none.

    ``has_offsets_in_order``: the offset deltas are 0, 1, 2, ... ``without_key`` are the indexes of records that have
    none. ``timestamps`` are those of all records.
    """

    has_offsets_in_order: bool
    without_key: list[int]
    timestamps: list[int]


def walk_records(batch: Buffer, header: BatchHeader, limit_bytes: int = MAX_UNCOMPRESSED_BYTES) -> RecordFacts:
    """Walk over the records of a whole batch whose header was checked.

    Raises ``InvalidBatch``: UNKNOWN_SERVER_ERROR for what cannot be unpacked, as Kafka answers, or is more than
    ``limit_bytes`` then; INVALID_RECORD for records that are not what they say and for more than ``MAX_RECORDS``.
    """
    if header.record_count > MAX_RECORDS:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, f"{header.record_count} records in one batch")
    packed = memoryview(batch)[HEADER_BYTES : header.size_bytes]
    try:
        data = decompress(header.codec, packed, limit_bytes)
    except CorruptBatch as error:
        raise InvalidBatch(ErrorCode.UNKNOWN_SERVER_ERROR, f"the records cannot be unpacked: {error}") from error
    if header.record_count * _LEAST_RECORD_BYTES > len(data):
        raise InvalidBatch(ErrorCode.INVALID_RECORD, f"{header.record_count} records in {len(data)} bytes")
    try:
        return _walk(data, header)
    except (CorruptBatch, IndexError) as error:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, f"a record that cannot be: {error}") from error


def _walk(data: bytes, header: BatchHeader) -> RecordFacts:
    """Most numbers have one byte, so these are taken without a call: the walk is half as long."""
    position = 0
    has_offsets_in_order = True
    without_key: list[int] = []
    timestamps: list[int] = []
    base_timestamp = header.base_timestamp
    total = len(data)
    for index in range(header.record_count):
        size, position = read_varint(data, position)
        end = position + size
        if size < _LEAST_RECORD_BYTES - 1 or end > total:
            raise CorruptBatch(f"record {index} of {size} bytes where {total - position} are left")
        # Attributes are unused, and skipped.
        byte = data[position + 1]
        if byte < 0x80:
            timestamps.append(base_timestamp + (byte >> 1 ^ -(byte & 1)))
            position += 2
        else:
            delta, position = read_varint(data, position + 1)
            timestamps.append(base_timestamp + delta)
        delta, position = read_varint(data, position)
        if delta != index:
            has_offsets_in_order = False
        if _is_null(data, position):
            without_key.append(index)
        position = _skip(data, position, end)
        position = _skip(data, position, end)
        if data[position] == 0:
            position += 1
        else:
            position = _skip_headers(data, position, end)
        if position != end:
            raise CorruptBatch(f"record {index} ends {end - position} bytes off")
    if position != total:
        raise CorruptBatch(f"{total - position} bytes after the last record")
    return RecordFacts(has_offsets_in_order, without_key, timestamps)


def _is_null(data: bytes, position: int) -> bool:
    """Whether the length here is -1, also if it takes more bytes than it needs."""
    byte = data[position]
    return byte == _NULL or (byte == _NULL | 0x80 and read_varint(data, position)[0] == -1)


def _skip(data: bytes, position: int, end: int) -> int:
    """Past a length and as many bytes; -1 is null."""
    byte = data[position]
    if byte < 0x80:
        size = byte >> 1 ^ -(byte & 1)
        position += 1
    else:
        size, position = read_varint(data, position)
    if size == -1:
        return position
    if size < 0 or position + size > end:
        raise CorruptBatch(f"{size} bytes where {end - position} are left")
    return position + size


def _skip_headers(data: bytes, position: int, end: int) -> int:
    count, position = read_varint(data, position)
    if count < 0 or count > end - position:
        raise CorruptBatch(f"{count} headers in {end - position} bytes")
    for _ in range(count):
        if _is_null(data, position):
            raise CorruptBatch("a header without a key")
        position = _skip(data, position, end)
        position = _skip(data, position, end)
    return position
