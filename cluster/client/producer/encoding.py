"""Records as parts of bytes, fast: what costs once per record in a program that sends a million of them.

Owns the tables of varints, the size of a record before it is packed, and packing one as parts that a batch joins once.
The layout itself is that of ``cluster.protocol.records`` (Kafka's DefaultRecord), which packs one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster.protocol.batch import HEADER_BYTES
from cluster.protocol.records import Header, write_varint

#: What a record has at most beside key, value and headers: length 5, timestamp 10, offset 5, attributes 1.
RECORD_OVERHEAD_BYTES = 21

#: The length of what is null: -1.
NULL = b"\x01"

#: By n: the varint n, and the bytes that it and n bytes after it take.
_SIZED: list[tuple[bytes, int]] = [(varint, len(varint) + n) for n, varint in enumerate(map(write_varint, range(4096)))]
#: By index in the batch: the varint of the offset delta.
OFFSETS: list[bytes] = [write_varint(index) for index in range(8192)]
NO_HEADERS = b"\x00"


#: By milliseconds after the batch's first record: attributes, which are unused, and the timestamp delta.
_TIMES = [b"\x00" + varint for varint, _size in _SIZED]


def time_part(delta_ms: int) -> bytes:
    """What a record has before its offset, ``delta_ms`` after the first of its batch, or before it."""
    return _TIMES[delta_ms] if 0 <= delta_ms < len(_TIMES) else b"\x00" + write_varint(delta_ms)


def size_upper_bound(key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> int:
    """The most that a batch of this record alone takes, uncompressed, in bytes.

    Kafka's AbstractRecords.estimateSizeInBytesUpperBound: what counts against max.request.size, and what a batch for
    a record larger than batch.size is given of buffer.memory. 196 for a key of 10 bytes and a value of 100.
    """
    total = HEADER_BYTES + RECORD_OVERHEAD_BYTES + 3
    if key is not None:
        total += sized(len(key))[1] - 1
    if value is not None:
        total += sized(len(value))[1] - 1
    return total + len(_packed_headers(headers)) - 1 if headers else total


def record_parts(
    before_offset: bytes, index: int, key: bytes | None, value: bytes | None, headers: Sequence[Header]
) -> tuple[tuple[bytes, ...], int]:
    """Any record at all, as (parts, bytes in all); the value is not copied. ``before_offset`` is a ``time_part``."""
    head = before_offset + (OFFSETS[index] if index < len(OFFSETS) else write_varint(index))
    head += NULL if key is None else sized(len(key))[0] + key
    if value is None:
        head, value = head + NULL, b""
    else:
        head += sized(len(value))[0]
    tail = _packed_headers(headers) if headers else NO_HEADERS
    length, size = sized(len(head) + len(value) + len(tail))
    return (length, head, value, tail), size


def as_bytes(data: bytes | bytearray | memoryview | None, what: str) -> bytes | None:
    """``data`` as bytes that no one can change anymore. Raises ``TypeError`` for what is no bytes."""
    if data is None or type(data) is bytes:
        return data
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    raise TypeError(f"the {what} of a record is bytes or None, not {type(data).__name__}: it needs a serializer")


def sized(count: int) -> tuple[bytes, int]:
    """The varint ``count``, and the bytes that it and the ``count`` bytes after it take."""
    if count < len(_SIZED):
        return _SIZED[count]
    varint = write_varint(count)
    return varint, len(varint) + count


def _packed_headers(headers: Sequence[Header]) -> bytes:
    packed = [write_varint(len(headers))]
    for name, content in headers:
        key = name.encode()
        packed += (sized(len(key))[0], key)
        packed += (NULL,) if content is None else (sized(len(content))[0], content)
    return b"".join(packed)
