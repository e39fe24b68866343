"""Spans of records of one shape: most batches hold records of one size, and those are checked column by column.

Owns the check whether records that follow one which is in order are in order too: byte for byte the same lengths at the
same places, the next offset deltas, timestamp deltas of as many bytes. Slices with a stride do that in C, where the
walk over single records (``record_checks``) costs ten times as much. It may give up at any record: the walk continues
there. Does not own what a record must be.
"""

from __future__ import annotations

from typing import NamedTuple

from cluster.protocol.records import read_varint

#: Records that are examined in one go: a span that ends early has cost no more than these.
LONGEST_SPAN = 256
#: Offset deltas whose varints have one byte and at most two.
_ONE_BYTE, _TWO_BYTES = 64, 8192

_LOW = bytes(range(0x80))
_HIGH = bytes(range(0x80, 0x100))
#: What a varint of one byte stands for.
_SIGNED = [byte >> 1 ^ -(byte & 1) for byte in range(0x80)]
#: The varints of the offset deltas 0, 1, 2, ...: those of one byte, and the two bytes of the others.
_OFFSETS = bytes(2 * delta for delta in range(_ONE_BYTE))
_OFFSETS_FIRST = bytes(2 * delta & 0x7F | 0x80 for delta in range(_TWO_BYTES))
_OFFSETS_SECOND = bytes(2 * delta >> 7 for delta in range(_TWO_BYTES))


class RecordSpan(NamedTuple):
    """Records of one shape, the first of them included. ``times`` are their timestamp deltas."""

    times: list[int]
    has_keys: bool


NO_SPAN = RecordSpan([], False)


def span_from(data: bytes, start: int, end: int, index: int, most: int) -> RecordSpan:
    """The span that begins with record ``index``, which is in order and lies at ``[start, end)``; at most ``most``."""
    size = end - start
    rows = min(most, (len(data) - start) // size, LONGEST_SPAN)
    _, body = read_varint(data, start)
    _, offset_at = read_varint(data, body + 1)
    _, key_at = read_varint(data, offset_at)
    key_size, key_end = read_varint(data, key_at)
    value_at = key_end + max(key_size, 0)
    value_size, value_end = read_varint(data, value_at)
    headers_at = value_end + max(value_size, 0)
    if data[headers_at] != 0:
        return NO_SPAN
    for at in (*range(start, body), *range(key_at, key_end), *range(value_at, value_end), headers_at):
        column = data[at : at + rows * size : size]
        rows -= len(column.lstrip(column[:1]))
    rows = _rows_in_order(data, offset_at, key_at - offset_at, size, rows, index)
    return RecordSpan(_times(data, body + 1, offset_at - body - 1, size, rows), key_size >= 0)


def _rows_in_order(data: bytes, at: int, width: int, size: int, rows: int, index: int) -> int:
    """As many of the records as have the offset deltas from ``index`` on: all that come into question, or none."""
    rows = min(rows, (_ONE_BYTE if width == 1 else _TWO_BYTES) - index)
    column = data[at : at + rows * size : size]
    if width == 1:
        return rows if column == _OFFSETS[index : index + rows] else 0
    second = data[at + 1 : at + 1 + rows * size : size]
    is_in_order = (
        width == 2
        and column == _OFFSETS_FIRST[index : index + rows]
        and second == _OFFSETS_SECOND[index : index + rows]
    )
    return rows if is_in_order else 0


def _times(data: bytes, at: int, width: int, size: int, rows: int) -> list[int]:
    """The timestamp deltas, as far as they all have ``width`` bytes, one or two."""
    if rows <= 0 or width > 2:
        return []
    column = data[at : at + rows * size : size]
    if width == 1:
        if column.count(column[0]) == rows and column[0] < 0x80:
            # Most batches are filled within a millisecond.
            return [_SIGNED[column[0]]] * rows
        return [_SIGNED[byte] for byte in column[: rows - len(column.lstrip(_LOW))]]
    rows -= len(column.lstrip(_HIGH))
    second = data[at + 1 : at + 1 + rows * size : size]
    rows -= len(second.lstrip(_LOW))
    zigzag = [low & 0x7F | high << 7 for low, high in zip(column[:rows], second[:rows], strict=True)]
    return [number >> 1 ^ -(number & 1) for number in zigzag]
