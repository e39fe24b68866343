"""Segment: one file of batches with its indexes.

Owns appending to the file and undoing it, when an index entry is added, finding a batch by offset or time, and cutting
the end off. Does not own which segment is written to, or anything about producers and epochs (``partition_log.py``).

Lookups have three steps: the newest batches are remembered one by one, so that readers at the end of the log cost no
read of the file; readers that continue where they stopped are found by that place; all others go through the sparse
index and a short scan.
"""

from __future__ import annotations

import logging
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from crc32c import crc32c

from cluster.log.aborted_index import AbortedIndex
from cluster.log.clean_state import SegmentRecord
from cluster.log.config import LogConfig
from cluster.log.errors import StorageFailed
from cluster.log.index import (
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
    OffsetIndex,
    TimeIndex,
    position_before_timestamp,
)
from cluster.log.removal import retire_file
from cluster.log.roll import SegmentState
from cluster.log.scan import LOOKUP_CHUNK_BYTES, scan_batches
from cluster.protocol.batch import BatchHeader, parse_header
from cluster.seams.storage import Bytes, File, FileRange, Storage, range_of

logger = logging.getLogger(__name__)

#: How the names of files end while compaction puts them in the place of others.
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
#: The files of a segment, that of the batches first.
SEGMENT_SUFFIXES = (".log", ".index", ".timeindex", ".txnindex")
#: Batches that are remembered one by one: at least this many, at most twice as many (16 bytes each).
RECENT_BATCHES = 256
#: Places at which readers stopped.
RESUME_PLACES = 16
#: Index entries that may wait in memory: one page of the file.
PENDING_ENTRIES = 512


class Segment:
    """One segment. ``next_offset`` is where it ends; the file is valid up to ``size_bytes``."""

    def __init__(
        self, directory: str, base_offset: int, config: LogConfig, storage: Storage, created_ms: int, suffix: str = ""
    ) -> None:
        """Open its files, or make them; ``suffix`` ends their names while a compaction writes them."""
        self._directory = directory
        self._stem = f"{directory}/{base_offset:020d}"
        self._suffix = suffix
        self._storage = storage
        self._config = config
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.file: File = storage.open(self._path(".log"), keep=True)
        self.aborted = AbortedIndex(storage, self._path(".txnindex"))
        self.reset()

    def __repr__(self) -> str:
        return f"Segment([{self.base_offset}, {self.next_offset}), {self.size_bytes} bytes)"

    def reset(self) -> None:
        """Begin as if empty, before the batches of the file are noted one by one."""
        self.next_offset = self.base_offset
        self.size_bytes = 0
        self.first_timestamp = -1
        self.max_timestamp = -1
        #: The last offset of the batch that holds ``max_timestamp``.
        self.max_timestamp_offset = self.base_offset
        self.offset_index = OffsetIndex(self.base_offset, self._config.segment_index_bytes)
        self.time_index = TimeIndex(self.base_offset, self._config.segment_index_bytes)
        #: Whether the segment must be rolled because an index takes no more; read for every batch.
        self.index_full = self.offset_index.is_full or self.time_index.is_full
        self._last_indexed_position = 0
        self._pending_entries = 0
        self._recent_floor = self.base_offset
        self._recent_last = array("q")
        self._recent_positions = array("q")
        self._resume: dict[int, int] = {}

    def _path(self, kind: str) -> str:
        return self._stem + kind + self._suffix

    @property
    def index_interval_bytes(self) -> int:
        return self._config.index_interval_bytes

    def read_index(self, kind: str) -> bytes:
        """The file ``.index`` or ``.timeindex``. Raises ``FileNotFoundError``."""
        return self._storage.read(self._path(kind))

    @property
    def paths(self) -> list[str]:
        """Its files, that of the batches last."""
        kinds = (".index", ".timeindex", ".txnindex", ".log")
        return [self._path(kind) for kind in kinds if kind != ".txnindex" or self.aborted.has_file]

    @property
    def files(self) -> list[File]:
        """Its open files."""
        return [self.file] if self.aborted.file is None else [self.file, self.aborted.file]

    @property
    def larger_index_bytes(self) -> int:
        return max(len(self.offset_index) * OFFSET_ENTRY_BYTES, len(self.time_index) * TIME_ENTRY_BYTES)

    def record(self) -> SegmentRecord:
        """What a sealed segment is, for the next start."""
        return SegmentRecord(
            self.base_offset,
            self.next_offset,
            self.size_bytes,
            self.first_timestamp,
            self.max_timestamp,
            self.max_timestamp_offset,
            crc32c(self.offset_index.to_bytes()),
            crc32c(self.time_index.to_bytes()),
            crc32c(self.aborted.to_bytes()),
        )

    def extend(
        self,
        size_bytes: int,
        next_offset: int,
        max_timestamp: int,
        max_timestamp_offset: int,
        last_indexed_position: int,
    ) -> None:
        """Take the file's first ``size_bytes`` for good; the indexes have their entries already."""
        self.size_bytes = size_bytes
        self.next_offset = self._recent_floor = next_offset
        self.max_timestamp = max_timestamp
        self.max_timestamp_offset = max_timestamp_offset
        self._last_indexed_position = last_indexed_position
        self.index_full = self.offset_index.is_full or self.time_index.is_full

    @property
    def state(self) -> SegmentState:
        """What the roll decision wants to know, as a value."""
        return SegmentState(self.base_offset, self.size_bytes, self.first_timestamp, self.created_ms, self.index_full)

    # -- appending ----------------------------------------------------------------------------------------------------

    def write(self, data: Bytes) -> None:
        """Append bytes to the file; ``note`` must follow for each batch in them.

        Raises ``StorageFailed``, and then nothing was appended.
        """
        try:
            self.file.append(data)
        except OSError as error:
            self._undo_write()
            raise StorageFailed(f"writing {self.file.path}: {error}") from error

    def write_batches(self, batches: Sequence[bytes]) -> None:
        """Append whole batches that have their offsets, and note them. Raises ``StorageFailed``."""
        self.write(b"".join(batches))
        for batch in batches:
            header = parse_header(batch)
            self.note(header.last_offset, header.max_timestamp, len(batch))

    def _undo_write(self) -> None:
        try:
            self.file.truncate(self.size_bytes)
        except OSError as error:
            # Harmless while we live: the next append overwrites it, and after a crash the scan cuts it off.
            logger.warning("cannot cut %s back to %d bytes: %s", self.file.path, self.size_bytes, error)

    def note(self, last_offset: int, max_timestamp: int, size: int) -> None:
        """Take the next ``size`` bytes of the file as one batch that ends with ``last_offset``."""
        position = self.size_bytes
        if position == 0:
            self.first_timestamp = max_timestamp
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if position - self._last_indexed_position > self._config.index_interval_bytes:
            self._index(last_offset, position)
        recent = self._recent_last
        recent.append(last_offset)
        self._recent_positions.append(position)
        if len(recent) > 2 * RECENT_BATCHES:
            self._recent_floor = recent[RECENT_BATCHES - 1] + 1
            del recent[:RECENT_BATCHES]
            del self._recent_positions[:RECENT_BATCHES]
        self.size_bytes = position + size
        self.next_offset = last_offset + 1

    def _index(self, last_offset: int, position: int) -> None:
        self._last_indexed_position = position
        is_full = self.offset_index.append(last_offset, position)
        self.index_full = self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset) or is_full
        self._pending_entries += 1
        if self._pending_entries >= PENDING_ENTRIES:
            try:
                self.flush_indexes()
            except OSError as error:  # they stay pending, and are rebuilt from the log if need be
                logger.warning("cannot write the indexes of %s: %s", self.file.path, error)

    def seal(self) -> None:
        """No more appends: the time index gets its final entry, and both indexes go to their files."""
        self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
        self.flush_indexes()
        self._recent_floor = self.next_offset
        self._recent_last = array("q")
        self._recent_positions = array("q")

    def flush_indexes(self) -> None:
        self._pending_entries = 0
        self.offset_index.flush(self._storage, self._path(".index"))
        self.time_index.flush(self._storage, self._path(".timeindex"))

    # -- reading ------------------------------------------------------------------------------------------------------

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """(position, header) of each batch from ``position``, which must be the start of one."""
        return scan_batches(self.file, position, self.size_bytes)

    def locate(self, offset: int) -> int | None:
        """Where the first batch begins that reaches ``offset`` or beyond; None if there is none."""
        if offset >= self.next_offset:
            return None
        if offset >= self._recent_floor:
            at = bisect_left(self._recent_last, offset)
            # A log that was cut within a hole of its compaction ends above its last batch.
            return self._recent_positions[at] if at < len(self._recent_positions) else None
        position = self._resume.get(offset)
        if position is not None:
            return position
        start = self.offset_index.position_before_offset(offset)
        for position, header in scan_batches(self.file, start, self.size_bytes, chunk_bytes=LOOKUP_CHUNK_BYTES):
            if header.last_offset >= offset:
                return position
        return None

    def read(self, position: int, max_bytes: int, upper_bound: int, at_least_one: bool) -> tuple[FileRange | None, int]:
        """Whole batches from ``position``: at most ``max_bytes``, all below the offset ``upper_bound``, the first one
        larger if ``at_least_one``; and how many bytes they would be if the last one could be cut to fit."""
        limit = position + max_bytes
        if limit >= self.size_bytes and upper_bound >= self.next_offset:
            end = readable = self.size_bytes
        elif self._recent_positions and position >= self._recent_positions[0]:
            end, readable = self._recent_end(position, limit, upper_bound, at_least_one)
        else:
            end, readable = self._scanned_end(position, limit, upper_bound, at_least_one)
        records = range_of(self.file, position, end - position) if end > position else None
        return records, max(position, end, min(readable, limit)) - position

    def _recent_end(self, position: int, limit: int, upper_bound_offset: int, at_least_one: bool) -> tuple[int, int]:
        """Where the batches that fit end, and those below the bound."""
        positions = self._recent_positions
        below_bound = bisect_left(self._recent_last, upper_bound_offset)
        fitting = len(positions) if limit >= self.size_bytes else bisect_right(positions, limit) - 1
        first = bisect_left(positions, position)
        if at_least_one and fitting <= first:
            fitting = first + 1
        bound = positions[below_bound] if below_bound < len(positions) else self.size_bytes
        return (positions[fitting] if fitting < below_bound else bound), bound

    def _scanned_end(self, position: int, limit: int, upper_bound_offset: int, at_least_one: bool) -> tuple[int, int]:
        """The same, but the second number may be as little as ``limit``: what lies beyond is not looked for."""
        index = self.offset_index
        start = max(position, min(index.position_before(limit), index.position_before_offset(upper_bound_offset - 1)))
        end = readable = start
        for at, header in scan_batches(self.file, start, self.size_bytes, chunk_bytes=LOOKUP_CHUNK_BYTES):
            after = at + header.size_bytes
            if header.last_offset >= upper_bound_offset:
                break
            if (readable := after) > limit and not (at_least_one and at == position):
                break
            end, next_offset = after, header.next_offset
            if after >= limit:
                break
        if end > start:
            self._remember_place(next_offset, end)
        return end, readable

    def _remember_place(self, offset: int, position: int) -> None:
        resume = self._resume
        if position < self.size_bytes:
            resume[offset] = position
            if len(resume) > RESUME_PLACES:
                del resume[next(iter(resume))]

    # -- cutting ------------------------------------------------------------------------------------------------------

    def truncate_to(self, offset: int, *, holes_allowed: bool = False) -> None:
        """Remove the batches that reach ``offset`` or beyond, also one that begins before it.

        With ``holes_allowed`` the segment ends at ``offset`` even if its last batch ends before: what was between has
        been compacted (Kafka's ``UnifiedLog.truncateTo`` does so for all logs). Raises ``StorageFailed``.
        """
        place = self._place_of_cut(offset)
        if place is not None:
            self.cut(*place)
        elif holes_allowed:
            self.next_offset = offset

    def end_after_cut(self, offset: int, *, holes_allowed: bool = False) -> int:
        """Where the segment would end after ``truncate_to``. Raises ``OSError`` or ``CorruptBatch``."""
        place = self._place_of_cut(offset)
        if place is not None:
            return place[1]
        return offset if holes_allowed else self.next_offset

    def _place_of_cut(self, offset: int) -> tuple[int, int] | None:
        """(size, next offset) without the batches that reach ``offset``; None if there are none."""
        position = self.locate(offset)
        if position is None:
            return None
        (_, header) = next(scan_batches(self.file, position, self.size_bytes, chunk_bytes=LOOKUP_CHUNK_BYTES))
        return position, min(offset, header.base_offset)

    def cut(self, size: int, next_offset: int) -> None:
        """Cut the file to its first ``size`` bytes, the end of a batch, so that the segment ends at ``next_offset``."""
        try:
            self.file.truncate(size)
            self.aborted.truncate(next_offset)
        except OSError as error:
            raise StorageFailed(f"truncating {self.file.path}: {error}") from error
        if size == 0:
            self.reset()
            self.next_offset = self._recent_floor = next_offset
            return
        self.size_bytes = size
        self.next_offset = next_offset
        self.offset_index.truncate(size)
        self.time_index.truncate(next_offset)
        self.index_full = self.offset_index.is_full or self.time_index.is_full
        self._last_indexed_position = self.offset_index.position_before(size)
        keep = bisect_left(self._recent_positions, size)
        del self._recent_positions[keep:]
        del self._recent_last[keep:]
        self._recent_floor = min(self._recent_floor, next_offset)
        self._resume.clear()
        self._restore_max_timestamp()

    def _restore_max_timestamp(self) -> None:
        self.max_timestamp, self.max_timestamp_offset = self.time_index.last or (-1, self.base_offset)
        start = position_before_timestamp(self.offset_index, self.time_index, self.max_timestamp + 1)
        for _, header in self.headers(start):
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp = header.max_timestamp
                self.max_timestamp_offset = header.last_offset

    def fsync(self) -> None:
        for file in self.files:
            file.fsync()

    def close(self) -> None:
        for file in self.files:
            file.close()

    def delete(self) -> None:
        """Close, and remove all files of this segment but its snapshot."""
        self.close()
        remove_segment(self._directory, self.base_offset, self._storage)

    def retire(self) -> list[str]:
        """Give all files the suffix ``.deleted`` and return their names then; the file of batches stays open.

        The batches go first: without them a start takes the indexes for leftovers. Raises ``OSError``.
        """
        retired = (retire_file(self._storage, self._stem + suffix) for suffix in SEGMENT_SUFFIXES)
        return [path for path in retired if path is not None]

    def rename(self, suffix: str) -> None:
        """Let the names of its files end with ``suffix`` instead, that of the batches last. Raises ``OSError``."""
        before, self._suffix = self.paths, suffix
        self.aborted.path = self._path(".txnindex")
        for source, target in zip(before, self.paths, strict=True):
            self._storage.rename(source, target)


def remove_segment(directory: str, base_offset: int, storage: Storage) -> None:
    """Remove the files of a segment; its producer snapshot is no part of it."""
    for suffix in SEGMENT_SUFFIXES:
        storage.remove(f"{directory}/{base_offset:020d}{suffix}")
