"""The offset index and the time index of one segment, in memory as arrays and on disk in Kafka's layout.

Owns lookups and the two file formats: ``.index`` has entries of 8 bytes {offset - base, position}, ``.timeindex`` of 12
{timestamp, offset - base}, big-endian (Kafka's OffsetIndex and TimeIndex; docs/reference/kafka.md "Files of a log").
Does not own when an entry is added (``segment.py``). Both are sparse hints: a lookup gives a place at or before the one
that is wanted.

Entries reach the file in groups (``pending`` says how many wait): after a crash indexes are rebuilt from the log.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import lt

from cluster.log.errors import CheckpointError
from cluster.seams.storage import Storage

OFFSET_ENTRY_BYTES = 8
TIME_ENTRY_BYTES = 12

_TIME_ENTRY = struct.Struct(">qi")


class OffsetIndex:
    """Entries (last offset of a batch, where the batch begins), ascending in both."""

    def __init__(self, base_offset: int, max_bytes: int) -> None:
        self._base_offset = base_offset
        self._max_entries = max_bytes // OFFSET_ENTRY_BYTES
        self._offsets = array("i")
        self._positions = array("i")
        self._written = 0

    def __repr__(self) -> str:
        return f"OffsetIndex({self._base_offset}, {len(self)} entries, {self.pending} pending)"

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """(offset, position), ascending."""
        return (
            (self._base_offset + offset, position)
            for offset, position in zip(self._offsets, self._positions, strict=True)
        )

    @property
    def is_full(self) -> bool:
        return len(self._offsets) >= self._max_entries

    @property
    def pending(self) -> int:
        """Entries that are not in the file yet."""
        return len(self._offsets) - self._written

    def append(self, offset: int, position: int) -> bool:
        """Add an entry unless the index is full; whether it is full then."""
        room = self._max_entries - len(self._offsets)
        if room > 0:
            self._offsets.append(offset - self._base_offset)
            self._positions.append(position)
        return room <= 1

    def position_before_offset(self, offset: int) -> int:
        """Where a scan for ``offset`` may begin: the start of a batch at or before the one that holds it."""
        at = bisect_right(self._offsets, offset - self._base_offset)
        return self._positions[at - 1] if at else 0

    def position_before(self, position: int) -> int:
        """The start of an indexed batch at or before ``position``."""
        at = bisect_right(self._positions, position)
        return self._positions[at - 1] if at else 0

    def last_offset_from(self, position: int) -> int | None:
        """The last offset of the first indexed batch that begins at ``position`` or beyond, None if there is none."""
        at = bisect_left(self._positions, position)
        return self._base_offset + self._offsets[at] if at < len(self) else None

    def truncate(self, size: int) -> None:
        """Forget entries at or beyond byte ``size`` of the segment."""
        at = bisect_left(self._positions, size)
        del self._offsets[at:]
        del self._positions[at:]
        self._written = min(self._written, at)

    def flush(self, storage: Storage, path: str) -> None:
        """Bring the file up to date: cut it to what was written and still holds, then add what is pending."""
        _append_entries(storage, path, self._written * OFFSET_ENTRY_BYTES, self.to_bytes(self._written))
        self._written = len(self._offsets)

    def to_bytes(self, first: int = 0) -> bytes:
        """The file's bytes from its entry ``first`` on."""
        pairs = array("i", bytes((len(self) - first) * OFFSET_ENTRY_BYTES))
        pairs[0::2] = self._offsets[first:]
        pairs[1::2] = self._positions[first:]
        return _big_endian(pairs)

    def load(self, data: bytes) -> None:
        """Take the entries of a file that is known to be good. Raises ``ValueError`` if it is no whole number."""
        pairs = array("i", data)
        if sys.byteorder == "little":
            pairs.byteswap()
        self._offsets = pairs[0::2]
        self._positions = pairs[1::2]
        self._written = len(self._offsets)

    @property
    def ascends(self) -> bool:
        """Whether the entries can be what they say: each above the one before."""
        return _ascend(self._offsets) and _ascend(self._positions) and min(self._offsets[:1], default=0) >= 0

    @property
    def last_offset(self) -> int | None:
        """The newest indexed batch's last offset, None if there is none."""
        return self._base_offset + self._offsets[-1] if self._offsets else None

    @property
    def last_position(self) -> int:
        """The start of the newest indexed batch, 0 if there is none."""
        return self._positions[-1] if self._positions else 0

    @staticmethod
    def parse(data: bytes, base_offset: int) -> list[tuple[int, int]]:
        """The entries (offset, position) of an ``.index`` file. Raises ``CheckpointError``."""
        if len(data) % OFFSET_ENTRY_BYTES:
            raise CheckpointError(f"an offset index of {len(data)} bytes is no multiple of {OFFSET_ENTRY_BYTES}")
        pairs = array("i", data)
        if sys.byteorder == "little":
            pairs.byteswap()
        return [(base_offset + offset, position) for offset, position in zip(pairs[0::2], pairs[1::2], strict=True)]


class TimeIndex:
    """Entries (timestamp, an offset up to which no record is newer), ascending in both."""

    def __init__(self, base_offset: int, max_bytes: int) -> None:
        self._base_offset = base_offset
        self._max_entries = max_bytes // TIME_ENTRY_BYTES
        self._timestamps = array("q")
        self._offsets = array("i")
        self._written = 0

    def __repr__(self) -> str:
        return f"TimeIndex({self._base_offset}, {len(self)} entries, {self.pending} pending)"

    def __len__(self) -> int:
        return len(self._timestamps)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """(timestamp, offset), ascending."""
        return (
            (timestamp, self._base_offset + offset)
            for timestamp, offset in zip(self._timestamps, self._offsets, strict=True)
        )

    @property
    def is_full(self) -> bool:
        """One entry is kept free for the final one at the roll."""
        return len(self._timestamps) >= self._max_entries - 1

    @property
    def pending(self) -> int:
        """Entries that are not in the file yet."""
        return len(self._timestamps) - self._written

    @property
    def last(self) -> tuple[int, int] | None:
        """The newest (timestamp, offset), None if there is none."""
        if not self._timestamps:
            return None
        return self._timestamps[-1], self._base_offset + self._offsets[-1]

    @property
    def ascends(self) -> bool:
        """Whether the entries can be what they say: each above the one before."""
        return _ascend(self._timestamps) and _ascend(self._offsets) and min(self._offsets[:1], default=0) >= 0

    def maybe_append(self, timestamp: int, offset: int) -> bool:
        """Add an entry if it is newer than the last one and there is room; whether it ``is_full`` then."""
        timestamps = self._timestamps
        room = self._max_entries - len(timestamps)
        if timestamp >= 0 and room > 0 and (not timestamps or timestamp > timestamps[-1]):
            timestamps.append(timestamp)
            self._offsets.append(offset - self._base_offset)
            room -= 1
        return room <= 1

    def offset_before_timestamp(self, timestamp: int) -> int:
        """An offset before which no record is as new as ``timestamp``: a scan may begin there."""
        at = bisect_left(self._timestamps, timestamp)
        return self._base_offset + (self._offsets[at - 1] if at else 0)

    def offset_from_timestamp(self, timestamp: int) -> int | None:
        """The offset of the first entry as new as ``timestamp`` or newer, None if there is none."""
        at = bisect_left(self._timestamps, timestamp)
        return self._base_offset + self._offsets[at] if at < len(self) else None

    def truncate(self, end_offset: int) -> None:
        """Forget entries at or beyond ``end_offset``."""
        at = bisect_left(self._offsets, end_offset - self._base_offset)
        del self._timestamps[at:]
        del self._offsets[at:]
        self._written = min(self._written, at)

    def flush(self, storage: Storage, path: str) -> None:
        """Bring the file up to date: cut it to what was written and still holds, then add what is pending."""
        _append_entries(storage, path, self._written * TIME_ENTRY_BYTES, self.to_bytes(self._written))
        self._written = len(self._timestamps)

    def to_bytes(self, first: int = 0) -> bytes:
        """The file's bytes from its entry ``first`` on."""
        entries = zip(self._timestamps[first:], self._offsets[first:], strict=True)
        return b"".join(_TIME_ENTRY.pack(timestamp, offset) for timestamp, offset in entries)

    def load(self, data: bytes) -> None:
        """Take the entries of a file that is known to be good. Raises ``ValueError`` if it is no whole number."""
        if len(data) % TIME_ENTRY_BYTES:
            raise ValueError(f"a time index of {len(data)} bytes is no multiple of {TIME_ENTRY_BYTES}")
        entries = list(_TIME_ENTRY.iter_unpack(data))
        self._timestamps = array("q", [timestamp for timestamp, _ in entries])
        self._offsets = array("i", [offset for _, offset in entries])
        self._written = len(entries)

    @staticmethod
    def parse(data: bytes, base_offset: int) -> list[tuple[int, int]]:
        """The entries (timestamp, offset) of a ``.timeindex`` file. Raises ``CheckpointError``."""
        if len(data) % TIME_ENTRY_BYTES:
            raise CheckpointError(f"a time index of {len(data)} bytes is no multiple of {TIME_ENTRY_BYTES}")
        return [(timestamp, base_offset + offset) for timestamp, offset in _TIME_ENTRY.iter_unpack(data)]


def position_before_timestamp(offsets: OffsetIndex, times: TimeIndex, timestamp: int) -> int:
    """The start of a batch before which none is as new as ``timestamp``, at most one interval of the index before the
    first that is.

    Whenever the offset index gets an entry, the time index gets one too, unless no newer time has come since its last.
    So an entry of the time index names a batch after the offset entry before it, up to which all are older. If none is
    new enough, all batches up to the last offset entry are older; but a full time index says nothing of what follows.
    """
    offset = times.offset_from_timestamp(timestamp)
    if offset is not None:
        return offsets.position_before_offset(offset - 1)
    if times.is_full:
        return offsets.position_before_offset(times.offset_before_timestamp(timestamp))
    return offsets.last_position


def _ascend(values: array[int]) -> bool:
    return all(map(lt, values, values[1:]))


def _big_endian(values: array[int]) -> bytes:
    if sys.byteorder == "little":
        values.byteswap()
    return values.tobytes()


def _append_entries(storage: Storage, path: str, size: int, data: bytes) -> None:
    file = storage.open(path)
    try:
        if file.size_bytes != size:
            file.truncate(size)
        if data:
            file.append(data)
    finally:
        file.close()
