"""TransactionalLog: what a log is to those who decide transactions and to those who read only what is decided.

Owns the append of a coordinator's batches, the last stable offset, and that producers go back with the log, markers and
all. Does not own the checks (``transactions.py``), the append of producers' batches and of a leader's
(``appending.py``, ``replicated_appends.py``), or who coordinates.
"""

from __future__ import annotations

from cluster.log.appending import AppendInfo
from cluster.log.local_log import ReadResult
from cluster.log.replicated import PlacedBatch
from cluster.log.replicated_appends import ReplicatedAppends
from cluster.log.transactions import check_coordinators_batch, marker_in
from cluster.protocol.batch import parse_header, set_offset_and_epoch
from cluster.protocol.errors import CorruptBatch


class TransactionalLog(ReplicatedAppends):
    """See the module's text."""

    def append_as_coordinator(self, batch: bytearray, leader_epoch: int) -> AppendInfo:
        """Append a marker, or another batch of a producer that has no sequence; its offset and epoch are written into
        ``batch`` in place.

        Raises ``LogError``: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, INVALID_TXN_STATE,
        NOT_LEADER_OR_FOLLOWER, THROTTLING_QUOTA_EXCEEDED for one producer more than may be remembered, unless it is a
        marker, which must be written; then nothing was appended, unless it is ``StorageFailed``.
        """
        local = self._local
        local.check()
        header = parse_header(batch)
        entry = self.producers.get(header.producer_id)
        check_coordinators_batch(entry, header, marker_in(batch) if header.is_control else None)
        if entry is None and not header.is_control:
            self._owner.producer_room.admit(self, local.config.max_producers, self._clock.monotonic_ms())
        base_offset = local.log_end_offset
        if leader_epoch != self.epochs.latest_number:
            self._begin_epoch(leader_epoch, base_offset)
        set_offset_and_epoch(batch, 0, base_offset, leader_epoch)
        self._append_to_one_segment(memoryview(batch), [PlacedBatch(0, parse_header(batch))])
        last_offset = local.log_end_offset - 1
        if local.log_end_offset - local.recovery_point >= local.config.flush_messages:
            local.flush()
        return AppendInfo(base_offset, last_offset, -1, self.log_start_offset, last_offset)

    def committed(self, high_watermark: int) -> None:
        """Markers below ``high_watermark`` need not be remembered."""
        transactions = self.producers.transactions
        if transactions.unreplicated:
            transactions.committed(high_watermark)

    def last_stable_offset(self, high_watermark: int) -> int:
        """Below it every transaction is decided, and the decisions are replicated."""
        transactions = self.producers.transactions
        if not (transactions.open or transactions.unreplicated):
            return high_watermark
        first = transactions.first_undecided(high_watermark)
        return high_watermark if first is None else min(high_watermark, max(first, self.log_start_offset))

    def oldest_transaction_timestamp(self) -> int:
        """The time of the newest record of the transaction that has been open the longest; -1 if none is open. For any
        thread."""
        producer_ids = [*self.producers.transactions.open.values()]
        entry = self.producers.get(producer_ids[0]) if producer_ids else None
        return -1 if entry is None else entry.last_timestamp

    def aborted_transactions(
        self, fetch_offset: int, found: ReadResult, upper_bound_offset: int
    ) -> list[tuple[int, int]]:
        """(producer id, first offset) of each aborted transaction that has records in what was ``found``.

        As in Kafka there may be a few more: where the records end is told by the sparse index.
        """
        records = found.records
        if records is None:
            return []
        segments = self._local.segments.from_offset(found.segment_base_offset)
        segment = next(segments)
        end = segment.offset_index.last_offset_from(records.position + records.size)
        upper_bound_offset = min(upper_bound_offset, segment.next_offset if end is None else end)
        aborted, is_complete = segment.aborted.search(fetch_offset, upper_bound_offset)
        while not is_complete and (after := next(segments, None)) is not None:
            more, is_complete = after.aborted.search(fetch_offset, upper_bound_offset)
            aborted += more
        return aborted

    def mark_producers(self) -> None:
        """To be called every second or so: a truncation to what the log was then replays nothing before it."""
        self.producers.mark_within(self._local.log_end_offset)

    def _rebuild_producers(self) -> None:
        """From the newest mark that is left, or the log's first batch, replay the headers and markers."""
        local = self._local
        start = self.producers.rewind(local.log_end_offset)
        if start is None:
            start = local.segments.first.base_offset
            self._snapshots.load(start, self.producers)
        try:
            for segment in local.segments.from_offset(start):
                at = segment.locate(start)
                for position, header in segment.headers(at) if at is not None else ():
                    marker = marker_in(segment.file.pread(header.size_bytes, position)) if header.is_control else None
                    self.producers.update(header, header.base_offset, marker)
        except (OSError, CorruptBatch) as error:
            raise local.fail(f"replaying producers: {error}") from error
