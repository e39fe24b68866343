"""Finds the values in many batches at once: the k-th record of every batch in one numpy step ("lockstep").

Owns the record layout (kafka-semantics 2.2): ``length varint | attributes i8 | timestampDelta varlong | offsetDelta
varint | keyLength varint, key | valueLength varint, value | headerCount varint, headers``. All varints are zig-zag.
Keys, timestamps and headers are stepped over: no check needs them. Damaged bytes never raise, they mark their batch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: length, attributes, timestamp, offset, key length, value length, header count: one byte each.
MINIMUM_RECORD_BYTES = 7

_VARINT_BYTES = 5
_VARLONG_BYTES = 10


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
    first = np.cumsum(counts) - counts
    total = int(counts.sum())
    offset_delta = np.zeros(total, dtype=np.int64)
    position = np.zeros(total, dtype=np.int64)
    size = np.zeros(total, dtype=np.int64)
    # the longest first, so that the batches with a k-th record are always a prefix
    order = np.argsort(-counts, kind="stable")
    cursor, end, slot, remaining = starts[order], ends[order], first[order], counts[order]
    bad = np.zeros(order.size, dtype=np.bool_)
    active = np.searchsorted(-remaining, -np.arange(1, int(counts.max(initial=0)) + 1), side="right")
    for k, width in enumerate(active.tolist()):
        step = _step(buffer, cursor[:width], end[:width])
        bad[:width] |= step.bad
        target = slot[:width] + k
        offset_delta[target], position[target], size[target] = step.offset_delta, step.position, step.size
        # a damaged batch stands still, so that it never leaves its own bytes
        cursor[:width] = np.where(bad[:width], cursor[:width], step.next)
    bad |= (remaining > 0) & (cursor != end)
    damaged[order] |= bad
    batch = np.repeat(np.arange(counts.size, dtype=np.int64), counts)
    keep = ~damaged[batch]
    return Values(batch[keep], offset_delta[keep], position[keep], size[keep], damaged)


class _Step(NamedTuple):
    offset_delta: NDArray[np.int64]
    position: NDArray[np.int64]
    size: NDArray[np.int64]
    next: NDArray[np.int64]
    bad: NDArray[np.bool_]


def _step(buffer: NDArray[np.uint8], cursor: NDArray[np.int64], end: NDArray[np.int64]) -> _Step:
    """One record of every batch, each starting at its own cursor."""
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
    return _Step(offset_delta, position, value_size, record_end, bad)


def _varint(
    buffer: NDArray[np.uint8], position: NDArray[np.int64], width: int, bad: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Zig-zag varints at all positions, and the positions behind them; ``bad`` is set where there is none."""
    bad |= (position < 0) | (position >= buffer.size)
    at = np.where(bad, 0, position)
    byte = buffer[at]
    value = (byte & 0x7F).astype(np.uint64)
    more = byte >= 0x80
    at = at + 1
    shift = 7
    while more.any():
        if shift >= 7 * width:
            bad |= more
            break
        bad |= more & (at >= buffer.size)
        more &= ~bad
        byte = buffer[np.where(more, at, 0)]
        value |= np.where(more, (byte & 0x7F).astype(np.uint64) << np.uint64(shift), np.uint64(0))
        at = at + more
        more = more & (byte >= 0x80)
        shift += 7
    magnitude = (value >> np.uint64(1)).astype(np.int64)
    return np.where(value & np.uint64(1), ~magnitude, magnitude), at
