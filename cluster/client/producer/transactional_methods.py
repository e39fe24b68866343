"""What a program may call of a producer with transactions (KafkaProducer). Owns that face; ``Producer`` has it.

Does not own what happens (``transaction_calls.py``, ``transaction/manager.py``).
"""

from __future__ import annotations

from collections.abc import Mapping

from cluster.client.committed_offset import OffsetAndMetadata
from cluster.client.group_metadata import ConsumerGroupMetadata
from cluster.client.producer.transaction.transaction_errors import IllegalTransactionCall
from cluster.client.producer.transaction_calls import TransactionCalls
from cluster.topic_partition import TopicPartition


class TransactionalMethods:
    """Safe from any thread. All but ``begin_transaction`` wait for their outcome, up to max.block.ms.

    They raise ``TransactionTimeout`` if that is too short (the same call again waits on), ``AbortableTransactionError``
    if the transaction has to be aborted, ``FatalTransactionError``, as which ``ProducerFenced`` counts, if this
    producer can do nothing anymore, and ``IllegalTransactionCall`` for a call that does not fit the state.
    """

    _transactions: TransactionCalls | None

    def init_transactions(self) -> None:
        """Get a producer id for ``transactional.id``, and fence every other producer that has it. Once, before all
        else. What the other one left open is aborted.
        """
        self._calls().init()

    def begin_transaction(self) -> None:
        """What is sent from now on belongs to one transaction. Asks no broker, and never waits."""
        self._calls().begin()

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group_metadata: ConsumerGroupMetadata | str,
    ) -> None:
        """Commit, with the transaction, what a consumer has read: by partition, the next offset that its group reads.

        ``group_metadata`` is the consumer's, so that one that lost its partitions is fenced (KIP-447); an id alone
        fences no one. Raises also ``TypeError`` and ``ValueError`` for arguments that are wrong.
        """
        self._calls().send_offsets(offsets, group_metadata)

    def commit_transaction(self) -> None:
        """Send what is not sent yet, wait for the outcomes of all records, and commit.

        If a record failed, this fails, and the transaction has to be aborted. ``may_be_committed`` of the error says
        whether the coordinator may have committed nevertheless.
        """
        self._calls().commit()

    def abort_transaction(self) -> None:
        """Abort: records that were not sent fail with ``TransactionAborted``, those at brokers are waited for."""
        self._calls().abort()

    def _calls(self) -> TransactionCalls:
        if self._transactions is None:
            raise IllegalTransactionCall(
                "Cannot use transactional methods without enabling transactions: set the configuration "
                "'transactional.id'"
            )
        return self._transactions
