"""What a broker checks inside a producer's batch: row 14 of docs/produce-checks.md, and what 15 and 16 need.

Owns the walk over records, without taking keys and values out of them. Does not own the checks that the header alone
answers (``batch``), nor which topics need keys or bound timestamps. Every batch of a producer comes here, as in Kafka's
``LogValidator``: what is stored unseen is every reader's trouble. So the records of a batch that have one shape are
checked together (``record_spans``), and only others one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from cluster.protocol.batch import CODEC_MASK, CODEC_NONE, HEADER_BYTES, LOG_OVERHEAD, BatchHeader
from cluster.protocol.compression import MAX_UNCOMPRESSED_BYTES, decompress
from cluster.protocol.errors import CorruptBatch, ErrorCode, InvalidBatch
from cluster.protocol.record_spans import span_from
from cluster.protocol.records import read_varint

#: More records than any client sends at once: to walk over them holds up everyone else.
MAX_RECORDS = 500_000
#: Records of a batch whose offsets may be out of order, for then all of them are built again: a tenth of a second.
#: Kafka does it for any count, but only clients of long ago need it, and half a million records fit into 450 bytes.
MOST_OUT_OF_ORDER = 10_000
#: A record has at least: length, attributes, two deltas, three lengths.
_LEAST_RECORD_BYTES = 7
#: The least that its length can be, which does not count itself.
_LEAST_LENGTH = _LEAST_RECORD_BYTES - 1
_UNBOUNDED = 1 << 62
#: -1 as a varint: the length of what is null.
_NULL = 1
#: Records that are walked after one that began no run, before the next is tried; twice as many after each further one.
_PATIENCE = 8


#: What of one request is examined without leaving the event loop: some ten milliseconds of work.
RECORDS_AT_ONCE = 10_000
BYTES_AT_ONCE = 2_097_152
HEADERS_AT_ONCE = 16
ALL_HEADERS_AT_ONCE = 20_000
#: Up to this count of records each may have ``HEADERS_AT_ONCE``.
_FEW_RECORDS = ALL_HEADERS_AT_ONCE // HEADERS_AT_ONCE


class Postponed(Exception):
    """There is more in a batch than may be examined in one go: another thread should."""


class Effort:
    """What may still be examined for one request: records, and bytes once they are unpacked."""

    __slots__ = ("bytes_left", "headers_of_a_record", "is_all", "records_left")

    def __init__(self, bytes_left: int = BYTES_AT_ONCE, records_left: int = RECORDS_AT_ONCE) -> None:
        self.bytes_left = bytes_left
        self.records_left = records_left
        self.headers_of_a_record = HEADERS_AT_ONCE
        #: Whether what is more is refused, rather than postponed.
        self.is_all = False

    def renew(self) -> None:
        """For another request: that costs less than a new one."""
        self.bytes_left = BYTES_AT_ONCE
        self.records_left = RECORDS_AT_ONCE

    def most_headers(self, count: int) -> int:
        """What each of that many records may have."""
        most = self.headers_of_a_record
        return most if self.is_all or count <= _FEW_RECORDS else min(most, ALL_HEADERS_AT_ONCE // count)

    def __repr__(self) -> str:
        return f"Effort({self.bytes_left} bytes, {self.records_left} records{', at most' if self.is_all else ''})"

    @classmethod
    def all(cls, bytes_left: int = MAX_UNCOMPRESSED_BYTES) -> Effort:
        """As much as any request may ask for: what all its compressed batches unpack to is bounded together."""
        effort = cls(bytes_left, _UNBOUNDED)
        effort.headers_of_a_record = _UNBOUNDED
        effort.is_all = True
        return effort


class RecordFacts(NamedTuple):
    """What the walk found. Times are milliseconds, -1 for none.

    ``has_offsets_in_order``: the offset deltas are 0, 1, 2, ... ``without_key`` are the indexes of records that have
    none. ``deltas`` are the timestamps of all records, less the batch's base timestamp.
    """

    has_offsets_in_order: bool
    without_key: list[int]
    deltas: list[int]
    base_timestamp: int

    @property
    def timestamps(self) -> list[int]:
        """Of all records."""
        return [self.base_timestamp + delta for delta in self.deltas]


#: The same as calling the class, which costs a call more for every batch.
_new_facts: Callable[[tuple[Any, ...]], RecordFacts] = partial(tuple.__new__, RecordFacts)


def walk_records(batch: memoryview, header: BatchHeader, effort: Effort) -> RecordFacts:
    """Walk over the records of a whole batch whose header was checked, and take what that costs from ``effort``.

    Raises ``InvalidBatch``: UNKNOWN_SERVER_ERROR for what cannot be unpacked, as Kafka answers, or is more than the
    effort allows; INVALID_RECORD for records that are not what they say, for more than ``MAX_RECORDS``, and for
    more than ``MOST_OUT_OF_ORDER`` with offsets that are. Raises ``Postponed`` for more than may be examined now.
    """
    count = header.record_count
    if count > MAX_RECORDS:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, f"{count} records in one batch")
    packed = batch[HEADER_BYTES : header.batch_length + LOG_OVERHEAD]
    codec = header.attributes & CODEC_MASK
    records_left = effort.records_left = effort.records_left - count
    if records_left < 0:
        raise Postponed
    if codec != CODEC_NONE:
        data = _unpacked(codec, packed, effort)
    else:
        data = bytes(packed)
        # What is not packed is as large as the request, which is bounded itself.
        if not effort.is_all:
            bytes_left = effort.bytes_left = effort.bytes_left - len(data)
            if bytes_left < 0:
                raise Postponed
    if count * _LEAST_RECORD_BYTES > len(data):
        raise InvalidBatch(ErrorCode.INVALID_RECORD, f"{count} records in {len(data)} bytes")
    try:
        most_headers = effort.headers_of_a_record if count <= _FEW_RECORDS else effort.most_headers(count)
        return _walk(data, count, header.base_timestamp, most_headers)
    except (CorruptBatch, IndexError) as error:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, f"a record that cannot be: {error}") from error


def _unpacked(codec: int, packed: memoryview, effort: Effort) -> bytes:
    try:
        data = decompress(codec, packed, max(0, effort.bytes_left))
    except CorruptBatch as error:
        if not effort.is_all:
            # It may be sound, and only too large.
            raise Postponed from error
        raise InvalidBatch(ErrorCode.UNKNOWN_SERVER_ERROR, f"the records cannot be unpacked: {error}") from error
    effort.bytes_left -= len(data)
    return data


def _walk(data: bytes, count: int, base_timestamp: int, most_headers: int) -> RecordFacts:
    position = index = try_at = 0
    patience = _PATIENCE
    has_offsets_in_order = True
    without_key: list[int] = []
    times: list[int] = []
    while index < count:
        start = position
        position, time, offset, has_key = _read(data, start, most_headers)
        times.append(time)
        if offset != index:
            if count > MOST_OUT_OF_ORDER:
                raise CorruptBatch(
                    f"offset delta {offset} at index {index} (mended in batches of up to {MOST_OUT_OF_ORDER} records)"
                )
            has_offsets_in_order = False
        if not has_key:
            without_key.append(index)
        index += 1
        if index < count and index >= try_at and _may_be_a_span(data, start, position):
            span = span_from(data, start, position, index - 1, count - index + 1)
            more = len(span.times) - 1
            if more > 0:
                times += span.times[1:]
                without_key += () if span.has_keys else range(index, index + more)
                position += more * (position - start)
                index += more
                patience = _PATIENCE
            else:
                try_at = index + patience
                patience *= 2
    if position != len(data):
        raise CorruptBatch(f"{len(data) - position} bytes after the last record")
    return _new_facts((has_offsets_in_order, without_key, times, base_timestamp))


def _may_be_a_span(data: bytes, start: int, end: int) -> bool:
    """Whether the next two records seem to be as long as the one at ``[start, end)``."""
    after = 2 * end - start
    return data[start] == data[min(end, len(data) - 1)] and (
        data[start : start + 2] == data[end : end + 2] == data[after : after + 2]
    )


def _read(data: bytes, position: int, most_headers: int) -> tuple[int, int, int, bool]:
    """(where it ends, timestamp delta, offset delta, whether it has a key) of the record that begins at ``position``.

    Numbers of one byte, and of two where they are likely, are taken without a call: that halves the time. A length
    that reaches too far is found at the record's end.
    """
    start = position
    byte = data[position]
    if byte < 0x80:
        size = byte >> 1 ^ -(byte & 1)
        position += 1
    elif (second := data[position + 1]) < 0x80 and not byte & 1:
        size = (byte & 0x7F | second << 7) >> 1
        position += 2
    else:
        size, position = read_varint(data, position)
    end = position + size
    if size < _LEAST_LENGTH or end > len(data):
        raise CorruptBatch(f"a record of {size} bytes where {len(data) - start} are left")
    # Attributes are unused, and skipped.
    byte = data[position + 1]
    if byte < 0x80:
        time = byte >> 1 ^ -(byte & 1)
        position += 2
    else:
        time, position = read_varint(data, position + 1)
    byte = data[position]
    if byte < 0x80:
        offset = byte >> 1 ^ -(byte & 1)
        position += 1
    elif (second := data[position + 1]) < 0x80 and not byte & 1:
        offset = (byte & 0x7F | second << 7) >> 1
        position += 2
    else:
        offset, position = read_varint(data, position)
    has_key = data[position] != _NULL
    if has_key:
        has_key = not _is_null(data, position)
        position = _skip(data, position, end)
    else:
        position += 1
    byte = data[position]
    if byte >= 0x80 > data[position + 1] and not byte & 1:
        position += 2 + ((byte & 0x7F | data[position + 1] << 7) >> 1)
    else:
        position = _skip(data, position, end)
    if position < end and data[position] == 0:
        position += 1
    else:
        position = _skip_headers(data, position, end, most_headers)
    if position != end:
        raise CorruptBatch(f"a record ends {end - position} bytes off")
    return end, time, offset, has_key


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


def _skip_headers(data: bytes, position: int, end: int, most: int) -> int:
    count, position = read_varint(data, position)
    if count < 0 or count > end - position:
        raise CorruptBatch(f"{count} headers in {end - position} bytes")
    if count > most:
        raise Postponed
    for _ in range(count):
        if _is_null(data, position):
            raise CorruptBatch("a header without a key")
        position = _skip(data, position, end)
        position = _skip(data, position, end)
    return position
