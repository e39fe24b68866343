"""Finds the values in many batches at once, by numpy.

Where all records of a batch are of one length, as a load's mostly are, all are read in one step. Else the k-th record
of every batch is ("lockstep"), or, where that would be few in each step, the lengths tell first where every record
begins. So the time is that of their number, however they are divided. All ways read a record by the same function.

Owns the record layout (Kafka's DefaultRecord; docs/reference/kafka.md "Record"): ``length varint | attributes i8 |
timestampDelta varlong | offsetDelta varint | keyLength varint, key | valueLength varint, value | headerCount varint,
headers``. All varints are zig-zag. Keys, timestamps and headers are stepped over: no check needs them. Damaged bytes
never raise, they mark their batch.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: length, attributes, timestamp, offset, key length, value length, header count: one byte each.
MINIMUM_RECORD_BYTES = 7

_VARINT_BYTES = 5
_VARLONG_BYTES = 10

#: Records in one step for which a step of numpy costs no more than to find where each begins.
WIDE = 500

#: Records read at a time: few enough that the arrays stay in the processor's cache.
GROUP_RECORDS = 1 << 15

#: Offset deltas that take one byte, two, three, four and five as zig-zag varints; and lengths from which one is longer.
_DELTA_RANGES = ((0, 1 << 6), (1 << 6, 1 << 13), (1 << 13, 1 << 20), (1 << 20, 1 << 27), (1 << 27, 1 << 34))
_LENGTH_LIMITS = (1 << 6, 1 << 13, 1 << 20, 1 << 27)


class Values(NamedTuple):
    """Where the values lie, batch by batch and in the order of the batch. ``size`` is -1 for a null value.

    ``damaged`` is per batch: its bytes are not the records that it announces; its values are left out.
    """

    batch: NDArray[np.int64]
    offset_delta: NDArray[np.int64]
    position: NDArray[np.int64]
    size: NDArray[np.int64]
    damaged: NDArray[np.bool_]


def find_values(
    buffer: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64], counts: NDArray[np.int64]
) -> Values:
    """The values of ``n`` batches whose records are the uncompressed ``buffer[starts:ends]`` of each."""
    damaged = (counts < 1) | (counts * MINIMUM_RECORD_BYTES > ends - starts)
    counts = np.where(damaged, 0, counts)
    found = _Slots(*(np.zeros(int(counts.sum()), dtype=np.int64) for _ in range(3)))
    first = np.cumsum(counts) - counts
    for begin, end in _groups(counts):
        some = slice(begin, end)
        alike = _all_at_once(buffer, starts[some], ends[some], counts[some], first[some], found)
        rest = begin + np.flatnonzero(~alike & (counts[some] > 0))
        if rest.size:
            few = int(counts[rest].sum()) < WIDE * int(counts[rest].max())
            read = _one_by_one if few else _in_lockstep
            damaged[rest] = read(buffer, starts[rest], ends[rest], counts[rest], first[rest], found)
    batch = np.repeat(np.arange(counts.size, dtype=np.int64), counts)
    # a record stands where its offset says, and nowhere else
    damaged[batch[found.offset_delta < 0]] = True
    behind = (batch[1:] == batch[:-1]) & (found.offset_delta[1:] <= found.offset_delta[:-1])
    damaged[batch[1:][behind]] = True
    if not damaged.any():
        return Values(batch, found.offset_delta, found.position, found.size, damaged)
    keep = ~damaged[batch]
    return Values(batch[keep], found.offset_delta[keep], found.position[keep], found.size[keep], damaged)


class _Slots(NamedTuple):
    """Where the records of all batches are noted, batch after batch."""

    offset_delta: NDArray[np.int64]
    position: NDArray[np.int64]
    size: NDArray[np.int64]


def _groups(counts: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of batches with about ``GROUP_RECORDS`` records, at least one batch each."""
    ends = np.cumsum(counts)
    first = 0
    while first < counts.size:
        before = int(ends[first]) - int(counts[first])
        last = max(first + 1, int(np.searchsorted(ends, before + GROUP_RECORDS, side="right")))
        yield first, last
        first = last


def _all_at_once(
    buffer: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    counts: NDArray[np.int64],
    first: NDArray[np.int64],
    found: _Slots,
) -> NDArray[np.bool_]:
    """Note the records of all batches in which every record is as long as the first one lets expect; which those are.

    A guess that is checked: every record is read where it is expected. If each ends where the next one was read, the
    first one being where the batch begins and the last one ending where it ends, these are the batch's records.
    """
    total = int(counts.sum())
    if not total:
        # the buffer may be empty: no batch of a chunk could be decompressed
        return np.zeros(counts.size, dtype=np.bool_)
    length, _ = _varint(buffer, starts, _VARINT_BYTES, np.zeros(starts.size, dtype=np.bool_))
    slots = slice(int(first[0]), int(first[0]) + total)
    number = np.arange(total, dtype=np.int64) - np.repeat(first - first[0], counts)
    cursor = np.repeat(starts, counts)
    most = int(counts.max())
    for extra, (low, high) in enumerate(_DELTA_RANGES):
        if low >= most:
            break
        # a longer offset delta makes the record longer, and perhaps the length in front of it
        own = length + extra
        size = own + 1 + sum((own >= limit).astype(np.int64) for limit in _LENGTH_LIMITS)
        many = number if most <= 1 << 6 else np.clip(number - low, 0, high - low)
        cursor += many * np.repeat(size, counts)
    step = _step(buffer, cursor, np.repeat(ends, counts))
    last = first - first[0] + counts - 1
    expected = np.empty_like(cursor)
    expected[:-1] = cursor[1:]
    some = counts > 0
    expected[last[some]] = ends[some]
    wrong = step.bad | (step.next != expected)
    found.offset_delta[slots], found.position[slots], found.size[slots] = step.offset_delta, step.position, step.size
    alike = np.ones(counts.size, dtype=np.bool_)
    alike[np.repeat(np.arange(counts.size), counts)[wrong]] = False
    return alike


def _in_lockstep(
    buffer: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    counts: NDArray[np.int64],
    first: NDArray[np.int64],
    found: _Slots,
) -> NDArray[np.bool_]:
    """Note the records of many batches, the k-th of all in one step; which batches are damaged."""
    # the longest first, so that the batches with a k-th record are always a prefix
    order = np.argsort(-counts, kind="stable")
    cursor, end, slot, remaining = starts[order], ends[order], first[order], counts[order]
    bad = np.zeros(order.size, dtype=np.bool_)
    active = np.searchsorted(-remaining, -np.arange(1, int(counts.max(initial=0)) + 1), side="right")
    for k, width in enumerate(active.tolist()):
        step = _step(buffer, cursor[:width], end[:width])
        bad[:width] |= step.bad
        target = slot[:width] + k
        found.offset_delta[target], found.position[target], found.size[target] = (
            step.offset_delta, step.position, step.size,
        )  # fmt: skip
        # a damaged batch stands still, so that it never leaves its own bytes
        cursor[:width] = np.where(bad[:width], cursor[:width], step.next)
    bad |= cursor != end
    damaged = np.zeros(order.size, dtype=np.bool_)
    damaged[order] = bad
    return damaged


def _one_by_one(
    buffer: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    counts: NDArray[np.int64],
    first: NDArray[np.int64],
    found: _Slots,
) -> NDArray[np.bool_]:
    """Note the records of few batches, once their lengths have told where each begins; which batches are damaged."""
    damaged = np.zeros(counts.size, dtype=np.bool_)
    columns = zip(starts.tolist(), ends.tolist(), counts.tolist(), first.tolist(), strict=True)
    for number, (start, end, count, slot) in enumerate(columns):
        begins = _begins(buffer[start:end].tobytes(), count)
        if begins is None:
            damaged[number] = True
        else:
            found.position[slot : slot + count] = start + np.frombuffer(begins, dtype=np.int64)
    owner = np.repeat(np.arange(counts.size, dtype=np.int64), counts)
    slots = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(owner.size, dtype=np.int64)
    whole = ~damaged[owner]
    owner, slots = owner[whole], slots[whole]
    for begin in range(0, owner.size, GROUP_RECORDS):
        some, at = owner[begin : begin + GROUP_RECORDS], slots[begin : begin + GROUP_RECORDS]
        # each ends where the next one begins, the last one with its batch: its length has said so
        step = _step(buffer, found.position[at], ends[some])
        damaged[some[step.bad]] = True
        found.offset_delta[at], found.position[at], found.size[at] = step.offset_delta, step.position, step.size
    return damaged


def _begins(data: bytes, count: int) -> array[int] | None:
    """Where each of the records begins that are all of these bytes; None if they are not."""
    begins = array("q")
    at, end = 0, len(data)
    for _ in range(count):
        begins.append(at)
        if at >= end:
            return None
        length = data[at]
        at += 1
        if length >= 0x80:
            length &= 0x7F
            for shift in range(7, 7 * _VARINT_BYTES, 7):
                if at >= end:
                    return None
                byte = data[at]
                at += 1
                length |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
            else:
                return None
        # an odd one is negative
        at += length >> 1
        if length & 1 or at > end:
            return None
    return begins if at == end else None


class _RecordStep(NamedTuple):
    offset_delta: NDArray[np.int64]
    position: NDArray[np.int64]
    size: NDArray[np.int64]
    next: NDArray[np.int64]
    bad: NDArray[np.bool_]


def _step(buffer: NDArray[np.uint8], cursor: NDArray[np.int64], end: NDArray[np.int64]) -> _RecordStep:
    """Records that start at these cursors, each within its batch, which has this end."""
    bad = np.zeros(cursor.size, dtype=np.bool_)
    length, body = _varint(buffer, cursor, _VARINT_BYTES, bad)
    record_end = body + length
    bad |= (length < MINIMUM_RECORD_BYTES - 1) | (record_end > end)
    _, at = _varint(buffer, body + 1, _VARLONG_BYTES, bad)
    offset_delta, at = _varint(buffer, at, _VARINT_BYTES, bad)
    key_size, at = _varint(buffer, at, _VARINT_BYTES, bad)
    value_size, position = _varint(buffer, at + np.maximum(key_size, 0), _VARINT_BYTES, bad)
    header_count, at = _varint(buffer, position + np.maximum(value_size, 0), _VARINT_BYTES, bad)
    # without headers the record must end here; with them its own length is trusted
    bad |= (key_size < -1) | (value_size < -1) | (header_count < 0) | (at > record_end)
    bad |= (header_count == 0) & (at != record_end)
    return _RecordStep(offset_delta, position, value_size, record_end, bad)


def _varint(
    buffer: NDArray[np.uint8], position: NDArray[np.int64], width: int, bad: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Zig-zag varints at all positions, and the positions behind them; ``bad`` is set where there is no valid one.

    Where ``bad`` is set what is returned means nothing, but can be calculated with.
    """
    # as unsigned numbers, negative positions are behind the end too
    bad |= position.view(np.uint64) >= np.uint64(buffer.size)
    byte = buffer.take(position, mode="clip")
    more = (byte >= 0x80) & ~bad
    at = position + 1
    if not more.any():
        return _ONE_BYTE.take(byte), at
    value = (byte & 0x7F).astype(np.int64)
    shift = 7
    while True:
        if shift >= 7 * width:
            bad |= more
            break
        bad |= more & (at >= buffer.size)
        byte = buffer.take(at, mode="clip")
        more &= ~bad
        value |= np.where(more, byte & 0x7F, 0).astype(np.int64) << shift
        at += more
        more &= byte >= 0x80
        if not more.any():
            break
        shift += 7
    # the tenth byte reaches the sign: shifted as unsigned, as everything else is
    magnitude = (value.view(np.uint64) >> np.uint64(1)).view(np.int64)
    return magnitude ^ -(value & 1), at


#: What a varint of one byte says.
_ONE_BYTE = np.array([(byte & 0x7F) >> 1 ^ -(byte & 1) for byte in range(256)], dtype=np.int64)
