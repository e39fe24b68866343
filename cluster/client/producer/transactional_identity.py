"""TransactionalIdentity: the producer's id, epoch and sequence numbers when a coordinator gives them (KIP-98).

Owns what is different within transactions: an id and epoch come from the coordinator alone, every partition's numbers
start from 0 under each, and a partition takes batches only when it is in the transaction. Nothing is settled: a
partition that lacks a batch lacks it until ``take``, for its transaction is aborted. Does not own the transaction
(``transaction/manager.py``). Source: Kafka's TransactionManager. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cluster.client.producer.idempotence import IdentityState, ProducerIdentity
from cluster.client.producer.transaction.manager import TransactionManager

if TYPE_CHECKING:
    from cluster.client.producer.batch import ProducerBatch


class TransactionalIdentity(ProducerIdentity):
    """NOT thread-safe: callers that share it must hold a lock."""

    is_transactional = True

    def __init__(self, manager: TransactionManager, max_in_flight: int = 5) -> None:
        super().__init__(max_in_flight)
        self._manager = manager

    def may_drain(self, batch: ProducerBatch) -> bool:
        """Whether the head of a queue may be sent now, for its partition as for its transaction."""
        topic_partition = (batch.topic, batch.partition)
        return super().may_drain(batch) and self._manager.may_send(topic_partition, is_retry=batch.has_sequence)

    def take(self, producer_id: int, producer_epoch: int) -> None:
        """The coordinator gave another id or epoch: no batch of the older one is without its outcome."""
        self._partitions.clear()
        self._troubled.clear()
        self.state = IdentityState.READY
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
