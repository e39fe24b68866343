"""``index-mismatch``: an offset index or a time index against the batches of its segment. Pure.

Owns what an entry must be. An offset entry names the last offset of an append and the byte where that append begins; a
time entry names the newest timestamp so far, and an offset of the batch that has it (Kafka's OffsetIndex and
TimeIndex). Both are sparse, so that an entry that is not there is no contradiction; but a closed segment's time index
ends with its newest timestamp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from verifier.files.formats import FormatError, OffsetEntries, OutOfBounds, TimeEntries, offset_entries, time_entries
from verifier.files.headers import Headers
from verifier.files.model import INDEX, Finding


def offset_index(name: str, data: bytes | OutOfBounds, headers: Headers) -> Iterator[Finding]:
    """What is wrong with the ``.index`` file ``name`` of this segment."""
    try:
        entries = offset_entries(data, headers.base_offset)
    except FormatError as error:
        yield _unread(name, error)
        return
    offsets, positions = entries.offsets, entries.positions
    if entries.left_over:
        yield _left_over(name, entries)
    outside = (offsets < headers.base_offset) | (offsets >= headers.end_offset)
    outside |= (positions < 0) | (positions >= headers.tail_position)
    at = np.searchsorted(headers.positions, positions)
    begins = np.isin(positions, headers.positions)
    batch = np.where(begins, at, 0)
    wrong = ~begins | ~np.isin(offsets, headers.last_offsets)
    if headers.base_offsets.size:
        wrong |= offsets < headers.base_offsets[batch]
    backwards = _not_after(offsets, strictly=True) | _not_after(positions, strictly=True)

    def said(index: int) -> str:
        return f"offset {offsets[index]} is said to be at byte {positions[index]}"

    def elsewhere(index: int) -> str:
        if not begins[index]:
            return f"{said(index)}, where no batch begins"
        held = batch[index]
        return f"{said(index)}, where a batch of {headers.base_offsets[held]}..{headers.last_offsets[held]} is"

    yield from _found(name, "outside", outside, offsets, lambda index: f"{said(index)}, outside the segment")
    yield from _found(name, "batch", wrong & ~outside, offsets, elsewhere)
    yield from _found(
        name, "order", backwards & ~outside & ~wrong, offsets, lambda index: f"{said(index)}, after a higher entry"
    )


def time_index(name: str, data: bytes | OutOfBounds, headers: Headers, *, closed: bool) -> Iterator[Finding]:
    """What is wrong with the ``.timeindex`` file ``name``. ``closed``: its segment was rolled, or stopped cleanly."""
    try:
        entries = time_entries(data, headers.base_offset)
    except FormatError as error:
        yield _unread(name, error)
        return
    timestamps, offsets = entries.timestamps, entries.offsets
    if entries.left_over:
        yield _left_over(name, entries)
    order = np.argsort(headers.base_offsets, kind="stable")
    place = np.searchsorted(headers.base_offsets[order], offsets, side="right") - 1
    newest = np.maximum.accumulate(headers.max_timestamps)
    if order.size:
        batch = order[np.maximum(place, 0)]
        outside = (place < 0) | (offsets > headers.last_offsets[batch])
        wrong = (headers.max_timestamps[batch] != timestamps) | (newest[batch] != timestamps)
    else:
        batch = np.zeros(offsets.size, dtype=np.int64)
        outside, wrong = np.ones(offsets.size, dtype=np.bool_), np.zeros(offsets.size, dtype=np.bool_)
    backwards = _not_after(timestamps, strictly=True) | _not_after(offsets, strictly=False)

    def said(index: int) -> str:
        return f"({timestamps[index]}, {offsets[index]})"

    def other(index: int) -> str:
        held = batch[index]
        if headers.max_timestamps[held] == timestamps[index]:
            return f"{said(index)}: a batch before it is newer, {newest[held]}"
        return f"{said(index)}: the batch's newest timestamp is {headers.max_timestamps[held]}"

    yield from _found(name, "outside", outside, offsets, lambda index: f"{said(index)}: no batch has that offset")
    yield from _found(name, "timestamp", wrong & ~outside, offsets, other)
    yield from _found(
        name,
        "order",
        backwards & ~outside & ~wrong,
        offsets,
        lambda index: f"{said(index)} is out of order",
    )
    last = int(timestamps[-1]) if timestamps.size else -1
    if closed and newest.size and newest[-1] >= 0 and last < newest[-1]:
        yield Finding(INDEX, "newest", name, None, 1, f"it ends with {last}, the segment's newest is {newest[-1]}")


def _not_after(values: NDArray[np.int64], *, strictly: bool) -> NDArray[np.bool_]:
    found = np.zeros(values.size, dtype=np.bool_)
    found[1:] = values[1:] <= values[:-1] if strictly else values[1:] < values[:-1]
    return found


def _unread(name: str, error: FormatError) -> Finding:
    return Finding(INDEX, "size", name, None, 1, str(error))


def _left_over(name: str, entries: OffsetEntries | TimeEntries) -> Finding:
    problem = f"{entries.left_over} bytes at byte {entries.size_bytes - entries.left_over} do not make a whole entry"
    return Finding(INDEX, "size", name, None, 1, problem)


def _found(
    name: str, cause: str, bad: NDArray[np.bool_], offsets: NDArray[np.int64], say: Callable[[int], str]
) -> Iterator[Finding]:
    """One finding for all entries that are wrong in this way, told by the lowest of them."""
    where = np.flatnonzero(bad)
    if where.size:
        lowest = int(where[np.argmin(offsets[where])])
        yield Finding(INDEX, cause, name, max(0, int(offsets[lowest])), int(where.size), say(lowest))
