"""The records of one batch with their keys and values, one by one. Owns the plain reading of Kafka's DefaultRecord.

For the few batches whose keys say something: markers of transactions, and the topics of coordinators. The load's values
are found by ``records``, thousands at a time (docs/reference/kafka.md "Record"). Judges nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from verifier.segments import compression

_MOST_SHIFT = 63


class DamagedRecords(ValueError):
    """The bytes are not the records that the batch announces; the message is one line."""


class KeyedRecord(NamedTuple):
    """One record; a null key or value is None."""

    offset_delta: int
    key: bytes | None
    value: bytes | None


def keyed_records(blob: bytes, count: int, codec: int = 0) -> list[KeyedRecord]:
    """The ``count`` records of a batch, whose bytes after the header are ``blob``. Raises ``DamagedRecords``."""
    try:
        plain = compression.decompress(codec, blob) if codec else blob
        found, at = [], 0
        for _ in range(count):
            record, at = _record(plain, at)
            found.append(record)
    except (IndexError, compression.DecompressionError) as error:
        raise DamagedRecords(f"the records end too early: {error}") from None
    if at != len(plain):
        raise DamagedRecords(f"{len(plain) - at} bytes follow the last record")
    return found


def _record(data: bytes, at: int) -> tuple[KeyedRecord, int]:
    size, at = _varint(data, at)
    end = at + size
    if size < 0 or end > len(data):
        raise DamagedRecords(f"a record of {size} bytes reaches outside the batch")
    _, at = _varint(data, at + 1)  # behind the attributes comes the timestamp
    offset_delta, at = _varint(data, at)
    key, at = _bytes(data, at, end)
    value, at = _bytes(data, at, end)
    headers, at = _varint(data, at)
    for _ in range(headers):
        name, at = _bytes(data, at, end)
        _, at = _bytes(data, at, end)
        if name is None:
            raise DamagedRecords("a header has no name")
    if headers < 0 or at != end:
        raise DamagedRecords(f"a record ends at byte {at}, not at {end}")
    return KeyedRecord(offset_delta, key, value), end


def _bytes(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    size, at = _varint(data, at)
    if size == -1:
        return None, at
    if size < 0 or at + size > end:
        raise DamagedRecords(f"{size} bytes reach outside the record")
    return data[at : at + size], at + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A zig-zag number of up to 64 bits. Raises ``IndexError`` at the end of the bytes."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
        if shift > _MOST_SHIFT:
            raise DamagedRecords("a number has more than 64 bits")
