"""The bytes of the files beside a log as arrays and plain numbers (docs/reference/kafka.md "Files of a log"). Judges
nothing.

Owns the layouts: ``.index`` has entries {offset - base i32, position i32}, ``.timeindex`` {timestamp i64, offset - base
i32}, ``.txnindex`` {version i16, then producer id, first, last and last stable offset i64}; a checkpoint is text:
version 0, the count, one line each; ``.snapshot`` is version i16, CRC-32C, count i32 and 46 bytes a producer.
``.producers`` is gapless's own file beside it: version i16, CRC-32C, leader epoch i32, count i32,
then int64s: of each producer its id, epoch, flags, last timestamp, number of batches, and from version 2 on the
coordinator epoch and first offset of its transaction; then five numbers a batch.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from verifier.evidence.bounded import NotRead, whole

#: Of any of these files: an index has 10 MB at most unless that was set otherwise, a snapshot some dozens or hundreds
#: of bytes a producer, a checkpoint a line for each epoch or partition.
MOST_BYTES = 64 << 20
_OFFSET_ENTRY = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIME_ENTRY = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])
_ABORTED_ENTRY = struct.Struct(">hqqqq")
_SNAPSHOT_HEAD = struct.Struct(">hIi")
_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
_HISTORIES_HEAD = struct.Struct(">hIii")
#: Both checksums cover everything after themselves.
_CRC_FROM = 6
_BATCH_NUMBERS = 5
#: How many numbers precede a producer's batches, by the version of a ``.producers``.
_HISTORY_NUMBERS = {1: 5, 2: 7}


class FormatError(ValueError):
    """The bytes are not what the file's name says; the message is one line."""


@dataclass(frozen=True, slots=True)
class OutOfBounds:
    """A file that is there and was not read, in place of its bytes; whatever needs them raises ``FormatError``."""

    why: str


class OffsetEntries(NamedTuple):
    """Entries of an ``.index``: absolute offsets and positions; ``left_over`` of the ``size_bytes`` make no entry."""

    offsets: NDArray[np.int64]
    positions: NDArray[np.int64]
    left_over: int
    size_bytes: int


class TimeEntries(NamedTuple):
    """Entries of a ``.timeindex``: timestamps in ms and absolute offsets; ``left_over`` as above."""

    timestamps: NDArray[np.int64]
    offsets: NDArray[np.int64]
    left_over: int
    size_bytes: int


class AbortedEntry(NamedTuple):
    """One aborted transaction of a ``.txnindex``; ``last_offset`` is its marker's."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class SnapshotEntry(NamedTuple):
    """What a snapshot says about a producer: its newest batch; -1 where it has none in its epoch."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int


def read(path: Path) -> bytes | OutOfBounds | None:
    """The bytes of one of these files, None if there is none. Raises ``OSError``."""
    try:
        return whole(path, MOST_BYTES)
    except FileNotFoundError:
        return None
    except NotRead as error:
        return OutOfBounds(str(error))


def offset_entries(data: bytes | OutOfBounds, base_offset: int) -> OffsetEntries:
    """All whole entries. Raises ``FormatError``."""
    entries, *size = _entries(data, _OFFSET_ENTRY)
    return OffsetEntries(entries["offset"].astype(np.int64) + base_offset, entries["position"].astype(np.int64), *size)


def time_entries(data: bytes | OutOfBounds, base_offset: int) -> TimeEntries:
    """All whole entries. Raises ``FormatError``."""
    entries, *size = _entries(data, _TIME_ENTRY)
    return TimeEntries(entries["timestamp"].astype(np.int64), entries["offset"].astype(np.int64) + base_offset, *size)


def aborted_entries(data: bytes | OutOfBounds) -> list[AbortedEntry]:
    """All of a ``.txnindex``, in their order. Raises ``FormatError``."""
    data = _bytes(data)
    if len(data) % _ABORTED_ENTRY.size:
        raise FormatError(f"{len(data)} bytes are no whole number of entries")
    found = []
    for version, *entry in _ABORTED_ENTRY.iter_unpack(data):
        if version != 0:
            raise FormatError(f"an entry of version {version}, only 0 is known")
        found.append(AbortedEntry._make(entry))
    return found


def _bytes(data: bytes | OutOfBounds) -> bytes:
    if isinstance(data, OutOfBounds):
        raise FormatError(data.why)
    return data


def _entries(data: bytes | OutOfBounds, kind: np.dtype[np.void]) -> tuple[NDArray[np.void], int, int]:
    """The entries, how many bytes are left over, and how many there are.

    Zeros at the end are room that Kafka keeps in the file of a live segment; the first entry may be all zeros.
    """
    data = _bytes(data)
    left_over = len(data) % kind.itemsize
    kept = data[: len(data) - left_over]
    used = len(kept.rstrip(b"\x00"))
    used += -used % kind.itemsize
    entries = np.frombuffer(kept[: max(used, kind.itemsize)] if kept else b"", dtype=kind)
    return entries, left_over, len(data)


def pairs(data: bytes | OutOfBounds) -> list[tuple[int, int]]:
    """(epoch, start offset) of ``leader-epoch-checkpoint``; an empty file has none. Raises ``FormatError``."""
    return [(_number(first), _number(second)) for first, second in _rows(data, 2)]


def offsets(data: bytes | OutOfBounds) -> dict[tuple[str, int], int]:
    """(topic, partition) -> offset of an offset checkpoint; an empty file has none. Raises ``FormatError``."""
    found: dict[tuple[str, int], int] = {}
    for topic, partition, offset in _rows(data, 3):
        key = topic, _number(partition)
        if key in found:
            raise FormatError(f"{topic}-{partition} is listed twice")
        found[key] = _number(offset)
    return found


def _rows(data: bytes | OutOfBounds, width: int) -> list[list[str]]:
    data = _bytes(data)
    if not data:
        return []
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        raise FormatError("it is not text") from None
    if lines[0].strip() != "0":
        raise FormatError(f"version {lines[0]!r:.20}, only 0 is known")
    rows = [line.split() for line in lines[2:]]
    if len(lines) < 2 or _number(lines[1].strip()) != len(rows):
        raise FormatError(f"{len(rows)} lines where {lines[1] if len(lines) > 1 else 'nothing'!r:.20} is announced")
    for number, row in enumerate(rows, start=3):
        if len(row) != width:
            raise FormatError(f"line {number} has {len(row)} fields, not {width}")
    return rows


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise FormatError(f"{text!r:.20} is not a number")
    return int(text)


def snapshot(data: bytes | OutOfBounds) -> list[SnapshotEntry]:
    """The producers of a ``.snapshot``. Raises ``FormatError``."""
    data = _bytes(data)
    if len(data) < _SNAPSHOT_HEAD.size:
        raise FormatError(f"{len(data)} bytes are not a producer snapshot")
    version, crc, count = _SNAPSHOT_HEAD.unpack_from(data)
    _check(data, version, crc, (1,))
    if len(data) != _SNAPSHOT_HEAD.size + count * _SNAPSHOT_ENTRY.size:
        raise FormatError(f"{len(data)} bytes for {count} producers")
    return _once([SnapshotEntry._make(row[:6]) for row in _SNAPSHOT_ENTRY.iter_unpack(data[_SNAPSHOT_HEAD.size :])])


def histories(data: bytes | OutOfBounds) -> list[SnapshotEntry]:
    """The producers of a ``.producers``, each with its newest batch. Raises ``FormatError``."""
    data = _bytes(data)
    if len(data) < _HISTORIES_HEAD.size or (len(data) - _HISTORIES_HEAD.size) % 8:
        raise FormatError(f"{len(data)} bytes are not producers' histories")
    version, crc, _, count = _HISTORIES_HEAD.unpack_from(data)
    _check(data, version, crc, tuple(_HISTORY_NUMBERS))
    width = _HISTORY_NUMBERS[version]
    numbers = np.frombuffer(data[_HISTORIES_HEAD.size :], dtype=">i8").tolist()
    found, at = [], 0
    for _ in range(count):
        head = numbers[at : at + width]
        end = at + width + (head[4] if len(head) == width else 0) * _BATCH_NUMBERS
        if len(head) < width or end > len(numbers) or end < at + width:
            raise FormatError(f"{len(data)} bytes for {count} producers")
        newest = numbers[end - _BATCH_NUMBERS : end] if head[4] else None
        sequence, offset, delta = (-1, -1, 0) if newest is None else (newest[1], newest[3], newest[3] - newest[2])
        found.append(SnapshotEntry(head[0], head[1], sequence, offset, delta, head[3]))
        at = end
    if at != len(numbers):
        raise FormatError(f"{len(data)} bytes for {count} producers")
    return _once(found)


def _once(found: list[SnapshotEntry]) -> list[SnapshotEntry]:
    """The same producers, each of which is there once."""
    known: set[int] = set()
    for producer in found:
        if producer.producer_id in known:
            raise FormatError(f"producer {producer.producer_id} is there twice")
        known.add(producer.producer_id)
    return found


def _check(data: bytes, version: int, crc: int, known: tuple[int, ...]) -> None:
    if version not in known:
        raise FormatError(f"version {version}, only {' and '.join(map(str, known))} is known")
    if google_crc32c.value(data[_CRC_FROM:]) != crc:
        raise FormatError("its checksum is wrong")
