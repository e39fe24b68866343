"""LogReplay: the epochs and producers of a log, rebuilt from its batches in their order.

Owns how many batches are noted at little cost. Does not own what a batch means: that is ``LeaderEpochCache.assign`` and
``ProducerStates.update``, and what is at the end is what they would have made of every batch, one by one.

Almost all batches continue the sequence of their producer in the same epoch. Such a span changes nothing but the newest
batches, so it is noted as numbers and settled when something else happens, or when the entries are examined.
"""

from __future__ import annotations

from collections import deque

from cluster.log.epochs import LeaderEpochCache
from cluster.log.producers import ProducerStates
from cluster.log.sequence import SEQUENCE_MASK, SEQUENCES, WINDOW, BatchMetadata, ProducerEntry
from cluster.protocol.batch import BatchHeader


class ProducerSpan:
    """Batches of one producer since its entry was last settled, each the continuation of the one before.

    ``next_sequence`` is not taken round the circle: at 2^31 and above no batch continues the span. ``newest`` are
    (base sequence, last offset delta, base offset, max timestamp).
    """

    __slots__ = ("newest", "next_sequence", "producer_epoch")

    def __init__(self, producer_epoch: int, next_sequence: int) -> None:
        self.producer_epoch = producer_epoch
        self.next_sequence = next_sequence
        self.newest: deque[tuple[int, int, int, int]] = deque(maxlen=WINDOW)


class LogReplay:
    """Fills ``epochs`` and ``producers``; ``settle`` must be called before the producers are examined."""

    def __init__(self, epochs: LeaderEpochCache, producers: ProducerStates, *, holes_allowed: bool) -> None:
        self.epochs = epochs
        self.producers = producers
        self.holes_allowed = holes_allowed
        #: By producer id; the walk adds to them directly.
        self.spans: dict[int, ProducerSpan] = {}

    def note_epoch(self, leader_epoch: int, base_offset: int) -> None:
        """A batch of another epoch than the latest. In a compacted log only a newer one is news."""
        latest = self.epochs.latest_number
        if leader_epoch > latest or (leader_epoch != latest and leader_epoch >= 0 and not self.holes_allowed):
            self.epochs.assign(leader_epoch, base_offset)

    def note_producer(self, header: BatchHeader) -> None:
        """A producer's batch that does not continue a span."""
        producer_id = header.producer_id
        span = self.spans.pop(producer_id, None)
        if span is not None:
            self._settle(producer_id, span)
        self.producers.update(header, header.base_offset)
        entry = self.producers.get(producer_id)
        if entry is not None and entry.batches:
            self.spans[producer_id] = ProducerSpan(entry.producer_epoch, entry.last_sequence + 1)

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
            )
        )
