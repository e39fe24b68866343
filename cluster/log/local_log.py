"""LocalLog: the segments of one log as a whole: where it ends, what is synced, rolling, reading, cutting.

Owns the files, the log end offset and the recovery point. Does not own appends, which move the log end
(``appending.py``), whether files' names are synced (``file_names.py``), nor what a batch means to producers, epochs or
clients (``partition_log.py``).

After a failed fsync the kernel may have dropped the pages and would report success the next time, so such a log is
failed for good: it answers KAFKA_STORAGE_ERROR until it is opened again. A failed write only fails that append.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from cluster.log.aborted_transactions import AbortedTransaction
from cluster.log.config import LogConfig
from cluster.log.errors import OffsetOutsideLog, StorageFailed, not_opened
from cluster.log.file_names import FileNames
from cluster.log.flush import PendingFlush
from cluster.log.removal import Doomed
from cluster.log.roll import next_base_offset
from cluster.log.segment import SWAP_SUFFIX, Segment
from cluster.log.segments import Segments
from cluster.protocol.batch import BatchHeader
from cluster.seams.clock import Clock
from cluster.seams.randomness import derive
from cluster.seams.storage import FileRange, Storage

logger = logging.getLogger(__name__)

#: Segments that are retired before others have their turn: each has files to rename and to remove.
RETIRED_AT_ONCE = 50


class ReadResult(NamedTuple):
    """Whole batches, or None if there are none to be read now.

    ``segment_base_offset`` names the segment of the records; a read does not cross segments. ``readable_bytes`` are
    what could be read if a batch could be cut to fit into ``max_bytes``, ``is_older_segment`` says that there is more
    below the bound in segments that follow: by these two Kafka judges whether to wait for more (``DelayedFetch``).
    """

    records: FileRange | None
    segment_base_offset: int
    readable_bytes: int
    is_older_segment: bool


class LocalLog:
    """See the module's text. ``directory`` is the replica's own."""

    def __init__(
        self,
        directory: str,
        segments: Segments,
        config: LogConfig,
        storage: Storage,
        clock: Clock,
        recovery_point: int,
        doomed: Doomed,
        cleaned_to: int,
        holes_allowed: bool,
        names_synced: bool,
    ) -> None:
        self.directory = directory
        self.segments = segments
        self.config = config
        self.log_end_offset = segments.active.next_offset
        self.recovery_point = min(recovery_point, self.log_end_offset)
        self.failure: str | None = None
        self._storage = storage
        self._clock = clock
        self._doomed = doomed
        #: How often the files were changed otherwise than by appends.
        self.cuts = 0
        self._names = FileNames(directory, storage, is_synced=names_synced)
        #: All below was compacted. What a power loss took from the end and is written again was not.
        self.cleaned_to = min(cleaned_to, self.log_end_offset)
        self.had_holes = holes_allowed
        self.jitter_ms = self._draw_jitter_ms()
        self._last_flush_ms = clock.monotonic_ms()

    def __repr__(self) -> str:
        return f"LocalLog({self.directory}, {self.segments}, synced to {self.recovery_point})"

    def check(self) -> None:
        """Raises ``StorageFailed`` if this log is failed."""
        if self.failure is not None:
            raise StorageFailed(f"{self.directory} failed before: {self.failure}")

    # -- rolling ------------------------------------------------------------------------------------------------------

    def roll(self, reason: str, first: BatchHeader | None = None) -> int:
        """Begin a new segment, for a next batch ``first``, and return its base offset. Raises ``StorageFailed``.

        The old one is not synced here: an fsync of a whole segment would stall everything else. It waits for the
        next flush, and until then the recovery point stays below it.
        """
        base_offset = next_base_offset(self.log_end_offset, first)
        try:
            self.segments.active.seal()
            self.segments.add(self._new_segment(base_offset))
        except OSError as error:
            raise not_opened(f"rolling {self.directory} at {base_offset}", error) from error
        self.jitter_ms = self._draw_jitter_ms()
        logger.info("%s: new segment at %d (%s)", self.directory, base_offset, reason)
        return base_offset

    def _new_segment(self, base_offset: int) -> Segment:
        self._names.given(1)
        segment = Segment(self.directory, base_offset, self.config, self._storage, self._clock.wall_ms())
        try:
            segment.flush_indexes()
        except BaseException:  # Whatever it was, it is raised again: only the open file must not be left behind.
            segment.close()
            raise
        return segment

    def _draw_jitter_ms(self) -> int:
        """Spread the rolls of many logs: a draw that depends on the log and segment alone, so it needs no generator.

        Less than ``segment.ms``, as in Kafka: else each batch would begin a segment.
        """
        most_ms = min(self.config.segment_jitter_ms, self.config.segment_ms)
        if most_ms <= 0:
            return 0
        return derive(self.segments.active.base_offset, self.directory).randrange(most_ms)

    # -- reading ------------------------------------------------------------------------------------------------------

    def read(
        self, offset: int, max_bytes: int, upper_bound_offset: int, log_start_offset: int, at_least_one: bool
    ) -> ReadResult:
        """Whole batches from the one that holds ``offset``, all below the bound. Raises ``OffsetOutsideLog``."""
        end = self.log_end_offset
        if not log_start_offset <= offset <= end:
            raise OffsetOutsideLog(offset, log_start_offset, end)
        if offset < upper_bound_offset and offset < end:
            for segment in self.segments.from_offset(offset):
                position = segment.locate(offset)
                if position is None:
                    continue
                records, readable_bytes = segment.read(position, max_bytes, upper_bound_offset, at_least_one)
                is_older = segment.next_offset < upper_bound_offset and segment.next_offset < end
                return ReadResult(records, segment.base_offset, readable_bytes, is_older)
        return ReadResult(None, self.segments.active.base_offset, 0, False)

    @property
    def holes_allowed(self) -> bool:
        """Whether offsets may be missing: compaction makes holes, and they outlive a change of the policy."""
        return self.had_holes or self.config.is_compacted

    # -- cutting ------------------------------------------------------------------------------------------------------

    def end_after_cut(self, offset: int) -> int:
        """Where the log would end after ``truncate_to(offset)``: at most there, as batches go whole."""
        last = self.segments.before(offset)
        return last.end_after_cut(offset, holes_allowed=self.holes_allowed)

    def truncate_to(self, offset: int) -> None:
        """Remove everything at or above ``offset``, which is not below the first segment. Raises ``StorageFailed``."""
        self.cuts += 1
        try:
            self.segments.drop_from_end(offset)
            self.segments.active.truncate_to(offset, holes_allowed=self.holes_allowed)
            self.segments.active.flush_indexes()
        except OSError as error:
            raise self.fail(f"truncating to {offset}: {error}") from error
        self._set_end()

    def start_over(self, offset: int) -> None:
        """Remove everything and begin at ``offset``. Raises ``StorageFailed``."""
        self.cuts += 1
        try:
            self.segments.delete_all()
            self.segments.replace_all(self._new_segment(offset))
            self.sync_names()
        except OSError as error:
            raise self.fail(f"starting over at {offset}: {error}") from error
        self._set_end()

    def drop_below(self, offset: int) -> bool:
        """Retire whole segments below ``offset``, or the first of many; whether any were. Raises ``StorageFailed``."""
        before = self.cuts
        try:
            if self.segments.any_below(offset):
                # A power loss must not take the name of what stays too: the log would begin at 0 again.
                self.sync_names()
            for segment, paths in islice(self.segments.retire_from_start(offset), RETIRED_AT_ONCE):
                self.cuts += 1
                self._doomed.add(self.config.file_delete_delay_ms, paths=paths, files=segment.files)
        except OSError as error:
            raise StorageFailed(f"deleting segments of {self.directory} below {offset}: {error}") from error
        return self.cuts > before

    def replace_segments(self, old: Sequence[Segment], new: Segment) -> None:
        """Put a compacted segment in the place of its originals (``cleaner.py``). Raises ``StorageFailed``."""
        self.cuts += 1
        try:
            new.rename(SWAP_SUFFIX)
            # The newest first: what a crash leaves of them lies within the new segment, or is compacted again.
            for segment in reversed(old):
                self._doomed.add(self.config.file_delete_delay_ms, paths=segment.retire(), files=segment.files)
            new.rename("")
        except OSError as error:
            raise self.fail(f"replacing segments from {new.base_offset} on: {error}") from error
        self.segments.replace(old, new)

    def note_aborted(self, segment: Segment, aborted: AbortedTransaction) -> None:
        """A marker was appended that aborts a transaction. Raises ``StorageFailed``."""
        try:
            self._names.given(segment.aborted.append([aborted]))
        except OSError as error:  # readers would take what was aborted for committed
            raise self.fail(f"noting {aborted}: {error}") from error

    def _set_end(self) -> None:
        self.log_end_offset = self.segments.active.next_offset
        self.cleaned_to = min(self.cleaned_to, self.log_end_offset)
        self.recovery_point = min(self.recovery_point, self.log_end_offset)

    # -- flushing -----------------------------------------------------------------------------------------------------

    def flush_due(self, now_ms: int) -> bool:
        """Whether ``flush.ms`` (monotonic) has passed with something unsynced."""
        return self.recovery_point < self.log_end_offset and now_ms - self._last_flush_ms >= self.config.flush_ms

    def begin_flush(self, up_to: int | None = None) -> PendingFlush | None:
        """Plan to sync everything below ``up_to`` (default: all); None if that is done already."""
        self.check()
        offset = self.log_end_offset if up_to is None else min(up_to, self.log_end_offset)
        if offset <= self.recovery_point:
            return None
        unsynced = self.segments.from_offset(self.recovery_point)
        files = [file for segment in unsynced if segment.base_offset < offset for file in segment.files]
        return PendingFlush(
            tuple(files), offset, self.cuts, self._names.count, self._names.unsynced_directories(), self._storage
        )

    def sync_names(self) -> None:
        """Sync what a flush leaves out because the log holds nothing to sync. Raises ``OSError``."""
        self._names.sync()

    def finish_flush(self, pending: PendingFlush, error: OSError | None = None) -> None:
        """Take note that ``pending`` ran, or with what ``error``. It proves nothing if the log was cut meanwhile.

        Raises ``StorageFailed`` for an error.
        """
        self._last_flush_ms = self._clock.monotonic_ms()
        if pending.cuts != self.cuts:
            return
        if error is not None:
            raise self.fail(f"syncing: {error}") from error
        self.recovery_point = max(self.recovery_point, pending.offset)
        self._names.synced_to(pending.names)

    def flush(self, up_to: int | None = None) -> None:
        """Sync everything below ``up_to`` (default: all) and move the recovery point. Raises ``StorageFailed``."""
        pending = self.begin_flush(up_to)
        if pending is None:
            return
        error: OSError | None = None
        try:
            pending.run()
        except OSError as caught:
            error = caught
        self.finish_flush(pending, error)

    def fail(self, reason: str) -> StorageFailed:
        """This log cannot be trusted anymore; returns what to raise."""
        logger.error("%s failed: %s", self.directory, reason)
        self.failure = reason
        return StorageFailed(f"{self.directory}: {reason}")
