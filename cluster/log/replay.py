"""LogReplay: the epochs and producers of a log, rebuilt from its batches in their order.

Owns how many batches are noted at little cost. Does not own what a batch means: that is ``LeaderEpochCache.assign`` and
``ProducerStates.update``, and what is at the end is what they would have made of every batch, one by one.

Almost all batches continue the sequence of their producer in the same epoch. Such a span changes nothing but the newest
batches, so it is noted as numbers and settled when something else happens, or when the entries are examined.
"""

from __future__ import annotations

from collections import deque

from cluster.log.aborted_transactions import AbortedTransaction
from cluster.log.epochs import LeaderEpochCache
from cluster.log.producers import ProducerStates
from cluster.log.sequence import SEQUENCE_MASK, SEQUENCES, WINDOW, BatchMetadata, ProducerEntry
from cluster.protocol.batch import TRANSACTIONAL_BIT, BatchHeader
from cluster.protocol.control_records import EndTransactionMarker


class ProducerSpan:
    """Batches of one producer since its entry was last settled, each the continuation of the one before.

    ``next_sequence`` is not taken round the circle: at 2^31 and above no batch continues the span. ``newest`` are
    (base sequence, last offset delta, base offset, max timestamp). ``transactional`` is that bit of the attributes of
    all its batches: while no transaction is open, one that has it begins one and so does not continue the span.
    """

    __slots__ = ("newest", "next_sequence", "producer_epoch", "transactional")

    def __init__(self, producer_epoch: int, next_sequence: int, transactional: int) -> None:
        self.producer_epoch = producer_epoch
        self.transactional = transactional
        self.next_sequence = next_sequence
        self.newest: deque[tuple[int, int, int, int]] = deque(maxlen=WINDOW)


class LogReplay:
    """Fills ``epochs`` and ``producers``; ``settle`` must be called before the producers are examined.

    ``knows_producers``: all that was before is known of them, so that a marker tells which transaction it ends.
    """

    def __init__(
        self, epochs: LeaderEpochCache, producers: ProducerStates, *, holes_allowed: bool, knows_producers: bool = True
    ) -> None:
        self.epochs = epochs
        self.producers = producers
        self.holes_allowed = holes_allowed
        self.knows_producers = knows_producers
        #: By producer id; the walk adds to them directly.
        self.spans: dict[int, ProducerSpan] = {}

    def note_epoch(self, leader_epoch: int, base_offset: int) -> None:
        """A batch of another epoch than the latest. In a compacted log only a newer one is news."""
        latest = self.epochs.latest_number
        if leader_epoch > latest or (leader_epoch != latest and leader_epoch >= 0 and not self.holes_allowed):
            self.epochs.assign(leader_epoch, base_offset)

    def note_producer(
        self, header: BatchHeader, marker: EndTransactionMarker | None = None
    ) -> AbortedTransaction | None:
        """A producer's batch that does not continue a span; returns the transaction that ``marker`` aborts, if any."""
        producer_id = header.producer_id
        span = self.spans.pop(producer_id, None)
        if span is not None:
            self._settle(producer_id, span)
        aborted = self.producers.update(header, header.base_offset, marker)
        entry = self.producers.get(producer_id)
        if entry is not None and entry.batches:
            transactional = TRANSACTIONAL_BIT if entry.txn_first_offset >= 0 else 0
            self.spans[producer_id] = ProducerSpan(entry.producer_epoch, entry.last_sequence + 1, transactional)
        return aborted

    def begin_segment(self, base_offset: int) -> None:
        """Remember the producers as they are here, so that a truncation can go back to it."""
        self.settle()
        self.producers.mark(base_offset)

    def settle(self) -> None:
        """Bring the producers up to date."""
        for producer_id, span in self.spans.items():
            self._settle(producer_id, span)

    def _settle(self, producer_id: int, span: ProducerSpan) -> None:
        entry = self.producers.get(producer_id)
        if entry is None or not span.newest:
            return
        batches = tuple(
            BatchMetadata(sequence, (sequence + delta) & SEQUENCE_MASK, offset, offset + delta, timestamp)
            for sequence, delta, offset, timestamp in span.newest
        )
        span.newest.clear()
        self.producers.put(
            ProducerEntry(
                producer_id,
                entry.producer_epoch,
                (*entry.batches, *batches)[-WINDOW:],
                entry.complete,
                batches[-1].timestamp,
                entry.wrapped or span.next_sequence > SEQUENCES,
                entry.coordinator_epoch,
                entry.txn_first_offset,
            )
        )
