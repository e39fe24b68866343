"""Records as parts of bytes, fast: what costs once per record in a program that sends a million of them.

Owns the tables of varints, the size of a record before it is packed, and packing one as parts that a batch joins once.
The layout itself is that of ``cluster.protocol.records`` (kafka-semantics 2.2), which packs one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster.protocol.batch import HEADER_BYTES
from cluster.protocol.records import Header, write_varint

#: What a record has at most beside key, value and headers: length 5, timestamp 10, offset 5, attributes 1.
RECORD_OVERHEAD_BYTES = 21

#: By n: the varint n, and the bytes that it and n bytes after it take. For keys, values and whole records.
SIZED: list[tuple[bytes, int]] = [(varint, len(varint) + n) for n, varint in enumerate(map(write_varint, range(4096)))]
#: By index in the batch: the varint of the offset delta, and its bytes.
OFFSETS: list[tuple[bytes, int]] = [(varint, len(varint)) for varint in map(write_varint, range(8192))]
#: The same with the length of a null key after it.
OFFSETS_AND_NULL_KEY: list[tuple[bytes, int]] = [(varint + b"\x01", size + 1) for varint, size in OFFSETS]
NO_HEADERS = b"\x00"


def time_part(delta_ms: int) -> bytes:
    """What a record has before its offset: attributes, which are unused, and the timestamp after the batch's first."""
    return b"\x00" + write_varint(delta_ms)


def sized_size(data: bytes | None) -> int:
    """The bytes of a length and what it tells of."""
    return 1 if data is None else len(write_varint(len(data))) + len(data)


def size_upper_bound(key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> int:
    """The most that a batch of this record alone takes, uncompressed, in bytes.

    Kafka's AbstractRecords.estimateSizeInBytesUpperBound: what counts against max.request.size, and what a batch for
    a record larger than batch.size is given of buffer.memory. 196 for a key of 10 bytes and a value of 100.
    """
    total = HEADER_BYTES + RECORD_OVERHEAD_BYTES + sized_size(key) + sized_size(value) + len(write_varint(len(headers)))
    for name, content in headers:
        total += sized_size(name.encode()) + sized_size(content)
    return total


def record_parts(
    before_offset: bytes, index: int, key: bytes | None, value: bytes | None, headers: Sequence[Header]
) -> tuple[tuple[bytes, ...], int]:
    """Any record at all, as (parts, bytes in all); the value is not copied. ``before_offset`` is a ``time_part``."""
    head = before_offset + write_varint(index) + _sized(key)
    if value is None:
        head, value = head + b"\x01", b""
    else:
        head += write_varint(len(value))
    tail = NO_HEADERS
    if headers:
        tail = write_varint(len(headers)) + b"".join(_sized(name.encode()) + _sized(data) for name, data in headers)
    length = len(head) + len(value) + len(tail)
    head = write_varint(length) + head
    return (head, value, tail), len(head) + len(value) + len(tail)


def as_bytes(data: bytes | bytearray | memoryview | None, what: str) -> bytes | None:
    """``data`` as bytes that nobody can change any more. Raises ``TypeError`` for what is no bytes."""
    if data is None or type(data) is bytes:
        return data
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    raise TypeError(f"the {what} of a record is bytes or None, not {type(data).__name__}: it needs a serializer")


def _sized(data: bytes | None) -> bytes:
    return b"\x01" if data is None else write_varint(len(data)) + data
