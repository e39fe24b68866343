"""Primitive types of the protocol: bounds-checked readers and the few writers that the hand-written codecs share.

Every reader takes a buffer and a position and returns the value and the next position. Lengths are compared with what
is left before anything is sliced, allocated or looped over (docs/reference/kafka.md "Framing and primitives"). Does not
own any message.

Fixed-size fields are read with ``struct.unpack_from``, which checks bounds itself; the codecs turn its
``struct.error`` into ``MalformedRequest`` once, at their entry (``refusing_malformed``).
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterator
from contextlib import contextmanager

from cluster.protocol.errors import MalformedRequest, ManyPartitions

Buffer = memoryview | bytes | bytearray

INT16 = struct.Struct(">h")
INT32 = struct.Struct(">i")
INT64 = struct.Struct(">q")

#: All elements of all arrays of one message. A frame of 100 MiB could otherwise become gigabytes of small objects.
MAX_ELEMENTS = 500_000
#: All topics and partitions of one Produce or Fetch request: to parse them takes a tenth of a second.
MAX_PARTITIONS = 40_000

#: Tagged fields of one struct of these, and of a request's header: no client sends one that this broker does not know.
MAX_TAGS = 4

#: What reading beyond a buffer, or text that is no UTF-8, raises; codecs make it ``MalformedRequest``.
READ_ERRORS = (struct.error, IndexError, UnicodeDecodeError)

#: What an int16 before a text can count.
_MOST_TEXT_BYTES = 32_767

#: An unsigned varint of 32 bits has at most five bytes.
_MAX_VARINT_SHIFT = 28


@contextmanager
def refusing_malformed(what: str) -> Iterator[None]:
    """Make a ``MalformedRequest`` that names ``what`` out of any error of reading. Hot paths write the same out, which
    is quicker."""
    try:
        yield
    except (*READ_ERRORS, MalformedRequest) as error:
        raise MalformedRequest(f"{what}: {error}") from error


def check_total(count: int, most: int = MAX_PARTITIONS) -> None:
    """Whether a request may name this many topics and partitions. Raises ``ManyPartitions`` above ``most``, and
    ``MalformedRequest`` above ``MAX_PARTITIONS``."""
    if count > MAX_PARTITIONS:
        raise MalformedRequest(f"more than {MAX_PARTITIONS} topics and partitions")
    if count > most:
        raise ManyPartitions


def read_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits."""
    byte = buffer[position]
    position += 1
    if byte < 0x80:
        return byte, position
    value = byte & 0x7F
    shift = 7
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > _MAX_VARINT_SHIFT:
            raise MalformedRequest("a varint longer than five bytes")
    if value > 0xFFFFFFFF:
        raise MalformedRequest("a varint beyond 32 bits")
    return value, position


def read_slice(buffer: Buffer, position: int, size: int, what: str = "bytes") -> tuple[memoryview, int]:
    """``size`` bytes without copying them, if that many are left."""
    end = position + size
    if size < 0 or end > len(buffer):
        raise MalformedRequest(f"{what} of {size} bytes where {max(0, len(buffer) - position)} are left")
    view = buffer if isinstance(buffer, memoryview) else memoryview(buffer)
    return view[position:end], end


def read_text(buffer: Buffer, position: int, size: int) -> tuple[str, int]:
    """``size`` bytes of UTF-8."""
    end = position + size
    if size < 0 or end > len(buffer):
        raise MalformedRequest(f"string of {size} bytes where {max(0, len(buffer) - position)} are left")
    return str(buffer[position:end], "utf-8"), end


def read_nullable_string(buffer: Buffer, position: int) -> tuple[str | None, int]:
    """An int16 length and that many bytes; -1 is null, and any other negative length is malformed."""
    (size,) = INT16.unpack_from(buffer, position)
    if size == -1:
        return None, position + 2
    return read_text(buffer, position + 2, size)


def read_string(buffer: Buffer, position: int) -> tuple[str, int]:
    """Like ``read_nullable_string``, where null may not be."""
    (size,) = INT16.unpack_from(buffer, position)
    return read_text(buffer, position + 2, size)


def read_compact_nullable_string(buffer: Buffer, position: int) -> tuple[str | None, int]:
    """A uvarint of length + 1 and that many bytes; 0 is null."""
    size, position = read_uvarint(buffer, position)
    if size == 0:
        return None, position
    return read_text(buffer, position, size - 1)


def read_compact_string(buffer: Buffer, position: int) -> tuple[str, int]:
    """Like ``read_compact_nullable_string``, where null may not be."""
    size, position = read_uvarint(buffer, position)
    return read_text(buffer, position, size - 1)


def check_count(buffer: Buffer, position: int, count: int, least_bytes: int) -> int:
    """Return ``count`` if that many elements of at least ``least_bytes`` each fit into what is left."""
    if count < 0 or count > MAX_ELEMENTS or count * least_bytes > len(buffer) - position:
        raise MalformedRequest(f"an array of {count} elements where {max(0, len(buffer) - position)} bytes are left")
    return count


def read_count(buffer: Buffer, position: int, least_bytes: int) -> tuple[int, int]:
    """The length of an array of elements of at least ``least_bytes`` each; null is malformed."""
    (count,) = INT32.unpack_from(buffer, position)
    position += 4
    return check_count(buffer, position, count, least_bytes), position


def read_compact_count(buffer: Buffer, position: int, least_bytes: int) -> tuple[int, int]:
    """The length of a compact array of elements of at least ``least_bytes`` each; null is malformed."""
    size, position = read_uvarint(buffer, position)
    return check_count(buffer, position, size - 1, least_bytes), position


def read_tags(buffer: Buffer, position: int, known: Container[int]) -> tuple[list[tuple[int, memoryview]], int]:
    """The tagged fields at the end of a struct, as (tag, bytes); tags must ascend strictly (KIP-482).

    Only those in ``known`` are kept: a stranger's cost two bytes of the frame each and hundreds of memory.
    """
    count, position = read_uvarint(buffer, position)
    if count == 0:
        return [], position
    check_count(buffer, position, count, 2)
    tags: list[tuple[int, memoryview]] = []
    previous = -1
    for _ in range(count):
        tag, position = read_uvarint(buffer, position)
        if tag <= previous:
            raise MalformedRequest(f"tag {tag} after tag {previous}")
        previous = tag
        size, position = read_uvarint(buffer, position)
        value, position = read_slice(buffer, position, size, "tagged field")
        if tag in known:
            tags.append((tag, value))
    return tags, position


def skip_tags(buffer: Buffer, position: int, most: int = MAX_ELEMENTS) -> int:
    """The position after the tagged fields of a struct, which has at most that many."""
    if buffer[position] == 0:
        return position + 1
    count, _ = read_uvarint(buffer, position)
    if count > most:
        raise MalformedRequest(f"{count} tagged fields in one struct")
    return read_tags(buffer, position, ())[1]


def write_uvarint(value: int) -> bytes:
    """An unsigned varint."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def cut_short(text: str) -> str:
    """As much of a text as an int16 can count in UTF-8."""
    if 4 * len(text) <= _MOST_TEXT_BYTES or len(data := text.encode()) <= _MOST_TEXT_BYTES:
        return text
    return data[: _MOST_TEXT_BYTES - 3].decode(errors="ignore") + "..."


def write_nullable_string(text: str | None) -> bytes:
    """An int16 length and UTF-8; null is -1."""
    if text is None:
        return b"\xff\xff"
    data = text.encode()
    return INT16.pack(len(data)) + data


def write_compact_nullable_string(text: str | None) -> bytes:
    """A uvarint of length + 1 and UTF-8; null is 0."""
    if text is None:
        return b"\x00"
    data = text.encode()
    return write_uvarint(len(data) + 1) + data
