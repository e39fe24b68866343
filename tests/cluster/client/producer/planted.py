"""Planted bugs of the sender's parts, for what must find them: the model world and the simulation.

Owns the wrong logic.
"""

from __future__ import annotations

from collections.abc import Container

from cluster.client.producer.accumulator import RecordAccumulator
from cluster.client.producer.batch import ProducerBatch
from cluster.client.producer.idempotence import ProducerIdentity, _PartitionSequence


class PutsRetriesAtTheEnd(RecordAccumulator):
    """Planted: a batch that is retried goes to the end of its queue."""

    def _insert(self, batch: ProducerBatch) -> None:
        self._queue_of(batch).append(batch)
        self._queued.add(batch)


class RestartsInFlight(ProducerIdentity):
    """Planted: when a batch fails, the others in flight are numbered again at once, whatever may be stored of them."""

    def failed(self, batch: ProducerBatch) -> None:
        super().failed(batch)
        if batch.has_sequence:
            self.restart((batch.topic, batch.partition))

    def settle(self, doubtful: Container[ProducerBatch]) -> list[ProducerBatch]:
        for topic_partition in self._troubled:
            self._partitions[topic_partition].at_broker.clear()
        return super().settle(())


class NumbersAtAppend(RecordAccumulator):
    """Planted: a batch has its sequence as soon as it is begun."""

    identity: ProducerIdentity | None = None

    def add(self, batch: ProducerBatch) -> None:
        super().add(batch)
        if self.identity is not None:
            partition = self.identity._partitions.setdefault((batch.topic, batch.partition), _PartitionSequence())
            self.identity.number(partition, batch)
