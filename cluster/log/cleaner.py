"""Cleaning: one compaction of one log, cut into what the loop does and what may run in another thread.

Owns reading the segments, writing ``.cleaned`` files, and the order of renames that survives a crash at any point
(Kafka's LogCleaner): ``.cleaned`` is written and synced; renamed to ``.swap``, the batches last, and from then on it
counts; the originals are retired; ``.swap`` gets its final name. ``recovery.tidy`` finishes or undoes what a crash
interrupts. Does not own the rules (``compaction.py``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from cluster.log.compaction import (
    Cleanable,
    CleanableSegment,
    LatestOffsets,
    NewestBatches,
    cleanable,
    compacted,
    group_segments,
)
from cluster.log.config import LogConfig
from cluster.log.local_log import LocalLog
from cluster.log.outcomes import TransactionOutcomes
from cluster.log.producers import ProducerStates
from cluster.log.scan import scan_batches
from cluster.log.segment import CLEANED_SUFFIX, SEGMENT_SUFFIXES, Segment
from cluster.log.transactions import marker_in
from cluster.protocol.batch import BatchHeader
from cluster.seams.storage import Storage

logger = logging.getLogger(__name__)

ReadBatch = Callable[[], bytes]

#: Bytes of rewritten batches that are written in one go.
WRITE_BYTES = 1_048_576


class CleaningCancelled(Exception):
    """Someone asked a cleaning to stop."""


@dataclass(slots=True)
class Cleaning:
    """One compaction. ``run`` it, in another thread if need be, then ``PartitionLog.finish_cleaning``.

    It reads files that do not change. If the log is cut meanwhile, at either end, the outcome is thrown away. ``cuts``
    is how often that had happened before; ``cancelled`` may be set by anyone.
    """

    directory: str
    config: LogConfig
    storage: Storage
    what: Cleanable
    groups: list[list[Segment]]
    newest: NewestBatches
    max_keys: int
    now_ms: int
    cuts: int
    cancelled: bool = False
    #: How far it came: all below is clean when it is finished.
    cleaned_to: int = -1
    #: Whether it ends before a transaction whose marker lies behind what was read.
    is_held_up: bool = False
    replacements: list[tuple[list[Segment], Segment]] = field(default_factory=list)

    def run(self) -> None:
        """Write the new segments. Blocks. Raises ``OSError``, ``CorruptBatch`` or ``CleaningCancelled``."""
        outcomes = self._outcomes()
        if self.cleaned_to <= self.what.first_dirty_offset:
            return
        latest = self._latest_offsets(outcomes)
        for group in self.groups:
            if group[0].base_offset < self.cleaned_to:
                self._clean(group, latest, outcomes)

    def _outcomes(self) -> TransactionOutcomes:
        """How transactions ended, and with that how far this compaction may reach."""
        outcomes = TransactionOutcomes(self.max_keys)
        self.cleaned_to = self.what.end_offset
        for header, read in self._all_headers():
            if outcomes.is_full:
                self.cleaned_to = header.base_offset
                break
            outcomes.note(header, marker_in(read()) if header.is_control else None)
        undecided_from = outcomes.undecided_from
        if undecided_from is not None and undecided_from < self.cleaned_to:
            self.is_held_up = True
            self.cleaned_to = max(undecided_from, self.what.first_dirty_offset)
        return outcomes

    def _latest_offsets(self, outcomes: TransactionOutcomes) -> LatestOffsets:
        """The map over what is dirty, or as much of it as the map takes: the rest is left to the next time.

        The producers' newest batches are noted on the way, as far as the compaction will reach.
        """
        latest = LatestOffsets(self.max_keys)
        for header, read in self._all_headers():
            if header.base_offset >= self.cleaned_to:
                break
            is_dirty = header.last_offset >= self.what.first_dirty_offset
            if is_dirty and latest.is_full:
                self.cleaned_to = header.base_offset
                break
            self.newest.note(header)
            if is_dirty and not outcomes.is_aborted(header):
                latest.note(read(), header)
        return latest

    def _clean(self, group: list[Segment], latest: LatestOffsets, outcomes: TransactionOutcomes) -> None:
        storage, directory, base_offset = self.storage, self.directory, group[0].base_offset
        protected = self.newest.base_offsets()
        for suffix in SEGMENT_SUFFIXES:  # of a cleaning that failed before
            storage.remove(f"{directory}/{base_offset:020d}{suffix}{CLEANED_SUFFIX}")
        cleaned = Segment(directory, base_offset, self.config, storage, group[-1].created_ms, CLEANED_SUFFIX)
        try:
            changed = len(group) > 1
            writer = _CleanedWriter(cleaned)
            for segment in group:
                for header, read in self._headers(segment):
                    kept = batch = read()
                    if header.base_offset < self.cleaned_to:
                        kept = compacted(
                            batch,
                            header,
                            latest,
                            is_aborted=outcomes.is_aborted(header),
                            protected=protected,
                            now_ms=self.now_ms,
                            delete_retention_ms=self.config.delete_retention_ms,
                        )
                    changed = changed or kept is not batch
                    writer.add(kept)
            if not changed:
                _discard(storage, cleaned)
                return
            writer.flush()
            for segment in group:
                cleaned.aborted.append(segment.aborted)
            cleaned.seal()
            cleaned.fsync()
            # Its name too, before the originals lose theirs.
            storage.sync_directory(directory)
        except BaseException:
            cleaned.close()
            raise
        self.replacements.append((group, cleaned))

    def _all_headers(self) -> Iterator[tuple[BatchHeader, ReadBatch]]:
        return (each for group in self.groups for segment in group for each in self._headers(segment))

    def _headers(self, segment: Segment) -> Iterator[tuple[BatchHeader, ReadBatch]]:
        """Each header, with what reads its batch; through a handle of its own: the log may close its own meanwhile."""
        file = self.storage.open(segment.paths[-1], create=False)
        try:
            for position, header in scan_batches(file, 0, segment.size_bytes):
                if self.cancelled:
                    raise CleaningCancelled(f"the compaction of {self.directory}")
                yield header, partial(file.pread, header.size_bytes, position)
        finally:
            file.close()

    def discard(self) -> None:
        """Remove what was written and is not wanted. What cannot be removed is left to the next start."""
        for _group, cleaned in self.replacements:
            _discard(self.storage, cleaned)
        self.replacements.clear()


def _discard(storage: Storage, cleaned: Segment) -> None:
    cleaned.close()
    try:
        for path in cleaned.paths:
            storage.remove(path)
    except OSError as error:
        logger.warning("cannot remove %s: %s", cleaned.file.path, error)


class _CleanedWriter:
    """Batches on their way into a new segment, many in one write."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._batches: list[bytes] = []
        self._size = 0

    def add(self, batch: bytes) -> None:
        if batch:
            self._batches.append(batch)
            self._size += len(batch)
            if self._size >= WRITE_BYTES:
                self.flush()

    def flush(self) -> None:
        if self._batches:
            self._segment.write_batches(self._batches)
        self._batches, self._size = [], 0


def cleanable_of(local: LocalLog, *, log_start_offset: int, stable_offset: int, now_ms: int) -> Cleanable | None:
    """What can be compacted of a log now. ``now_ms`` is wall time.

    Unlike in Kafka only what was synced: above the recovery point a hole between two segments means that a power loss
    took the end of the first (``recovery.py``), and compaction must leave none there.
    """
    return cleanable(
        _inactive(local),
        local.config,
        cleaned_to=local.cleaned_to,
        log_start_offset=log_start_offset,
        stable_offset=min(stable_offset, local.recovery_point),
        now_ms=now_ms,
    )


def plan_cleaning(
    local: LocalLog, producers: ProducerStates, storage: Storage, what: Cleanable, *, max_keys: int, now_ms: int
) -> Cleaning:
    """A compaction of ``what``; ``max_keys`` go into the map at most."""
    by_base = {segment.base_offset: segment for segment in local.segments}
    wanted = [facts for facts in _inactive(local) if facts.base_offset < what.end_offset]
    sized = [(facts, by_base[facts.base_offset].larger_index_bytes) for facts in wanted]
    groups = [[by_base[facts.base_offset] for facts in group] for group in group_segments(sized, local.config)]
    newest = NewestBatches(entry.producer_id for entry in producers)
    return Cleaning(local.directory, local.config, storage, what, groups, newest, max_keys, now_ms, local.cuts)


def _inactive(local: LocalLog) -> Sequence[CleanableSegment]:
    segments = list(local.segments)
    return [
        CleanableSegment(
            segment.base_offset, after.base_offset, segment.size_bytes, segment.first_timestamp, segment.max_timestamp
        )
        for segment, after in pairwise(segments)
    ]
