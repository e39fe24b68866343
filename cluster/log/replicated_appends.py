"""ReplicatedAppends: how batches get into a follower's log, as its leader sent them.

Owns the order in which verified batches change file, epochs and producers, and where among them a segment begins. Does
not own the verification (``replicated.py``) nor the files (``local_log.py``). Nothing is noted of a batch before it is
wholly in the file.
"""

from __future__ import annotations

import logging

from cluster.log.appending import AppendInfo, LogAppends
from cluster.log.replicated import Hole, PlacedBatch, verify_replicated
from cluster.log.roll import RollState, roll_reason
from cluster.log.segment import Segment
from cluster.log.transactions import marker_in
from cluster.protocol.batch import CONTROL_BIT, BatchHeader

logger = logging.getLogger(__name__)


class ReplicatedAppends(LogAppends):
    """What a ``PartitionLog`` is to a follower's fetcher."""

    def append_as_follower(self, records: memoryview) -> AppendInfo | None:
        """Append what the leader sent: batches that keep their offsets and epochs, and so the holes of its log.

        A partial batch at the end is ignored; None if there is no whole one. All are verified before the first is
        written. Raises ``LogError``: CORRUPT_MESSAGE, ``UnexpectedOffset``, ``StorageFailed``.
        """
        local = self._local
        local.check()
        newest = self.epochs.entries[-1:]
        # Nothing was written yet in an epoch that begins at the log's end, so an older one may still follow.
        latest_epoch = newest[0].epoch if newest and newest[0].start_offset < local.log_end_offset else -1
        batches, hole = verify_replicated(records, local.log_end_offset, latest_epoch)
        if not batches:
            return None
        if hole is not None and not local.holes_allowed:
            self._expect_holes(hole)
        rest = batches
        while rest:
            rest = self._append_to_one_segment(records, rest)
        if local.log_end_offset - local.recovery_point >= local.config.flush_messages:
            local.flush()
        last_offset = batches[-1].header.last_offset
        return AppendInfo(batches[0].header.base_offset, last_offset, -1, self.log_start_offset, last_offset)

    def _expect_holes(self, hole: Hole) -> None:
        """Before the first hole is in the files, for the next start would take it for a loss. Raises
        ``StorageFailed``."""
        logger.warning("%s-%d: the leader has nothing from %d to before %d", self.topic, self.partition, *hole)
        self._owner.may_have_holes(self)
        self._local.had_holes = True

    def _append_to_one_segment(self, records: memoryview, batches: list[PlacedBatch]) -> list[PlacedBatch]:
        """Write as many of ``batches`` as belong to one segment, in one go; returns those that are left."""
        local = self._local
        start, first = batches[0]
        now_ms = self._clock.wall_ms()
        if reason := self._reason_to_roll(local.segments.active, first, now_ms):
            self.roll(reason, first)
        segment = local.segments.active
        state = segment.state
        if state.size_bytes == 0:
            state = state._replace(first_timestamp=first.max_timestamp)
        count = 1
        for position, header in batches[1:]:
            after = state._replace(size_bytes=state.size_bytes + position - start)
            if self._reason_to_roll(after, header, now_ms):
                break
            count += 1
        headers = [batch.header for batch in batches[:count]]
        for header in headers:
            if header.leader_epoch != self.epochs.latest_number:
                self.epochs.assign(header.leader_epoch, header.base_offset)
        self._epoch_file.catch_up(self.epochs)
        segment.write(records[start : batches[count - 1].end])
        for position, header in batches[:count]:
            last_offset = header.last_offset
            size_bytes = header.size_bytes
            segment.note(last_offset, header.max_timestamp, size_bytes)
            local.log_end_offset = last_offset + 1
            if header.attributes & CONTROL_BIT:
                self._take_note_of_marker(segment, header, records[position : position + size_bytes])
            else:
                self.producers.update(header, header.base_offset)
        return batches[count:]

    def _reason_to_roll(self, segment: RollState, header: BatchHeader, now_ms: int) -> str | None:
        local = self._local
        size_bytes = header.size_bytes
        return roll_reason(
            segment, local.config, local.jitter_ms, size_bytes, header.last_offset, header.max_timestamp, now_ms
        )

    def _take_note_of_marker(self, segment: Segment, header: BatchHeader, batch: memoryview) -> None:
        """A control batch is wholly in the file: it may end its producer's transaction."""
        is_unknown = header.producer_id >= 0 and self.producers.get(header.producer_id) is None
        aborted = self.producers.update(header, header.base_offset, marker_in(batch))
        if is_unknown:
            most = self._local.config.max_producers
            self._owner.producer_room.marker_came(self, header.producer_id, most, self._clock.monotonic_ms())
        if aborted is not None:
            self._local.note_aborted(segment, aborted)
