"""TransactionalSenderCore: the sender of a producer with transactions (Kafka's Sender with its TransactionManager).

Owns how each learns of the other: which batches the transaction drops, what a failed batch does to it, and that its end
waits for every batch and every request. Does not own the transaction's decisions (``transaction/manager.py``). Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cluster.client.producer import failures
from cluster.client.producer.accumulator import RecordAccumulator
from cluster.client.producer.actions import FailBatch, WakeAt
from cluster.client.producer.delivery import ProduceError, RecordErrors
from cluster.client.producer.idempotence import ProducerIdentity
from cluster.client.producer.outcomes import BatchFacts, BatchOutcome
from cluster.client.producer.ready import earlier
from cluster.client.producer.sender import SenderCore
from cluster.client.producer.sender_settings import SenderSettings
from cluster.client.producer.transaction.manager import TransactionManager
from cluster.client.producer.transaction.produce_errors import transactional_produce_outcome
from cluster.client.producer.transaction.states import TxnProducerState
from cluster.client.producer.transaction.txn_actions import DropBatches, UseTxnIdentity
from cluster.client.producer.transactional_identity import TransactionalIdentity
from cluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from cluster.client.producer.batch import ProducerBatch


class TransactionalSenderCore(SenderCore):
    """NOT thread-safe: as ``SenderCore``, whose owner also holds the lock in every call of ``manager``."""

    def __init__(
        self,
        settings: SenderSettings,
        accumulator: RecordAccumulator,
        identity: TransactionalIdentity,
        backoff_ms: Callable[[int], int],
        manager: TransactionManager,
    ) -> None:
        super().__init__(settings, accumulator, identity, backoff_ms)
        self._txn_identity = identity
        self._manager = manager
        self._txn_wake_at_ms: int | None = None

    def disconnected(self, node: int, now_ms: int, is_timeout: bool = False) -> None:
        self._manager.node_lost(node)
        super().disconnected(node, now_ms, is_timeout)

    def _settle(self, identity: ProducerIdentity, now_ms: int) -> bool:
        """What the transaction wants done. Its end waits for requests too: what is in one, and has expired meanwhile,
        may still be stored.
        """
        is_dropping = True
        while is_dropping:
            is_dropping = False
            self._txn_wake_at_ms = None
            has_incomplete = not self._accumulator.is_empty or not self.is_idle
            for action in self._manager.tick(now_ms, has_incomplete_batches=has_incomplete):
                if isinstance(action, DropBatches):
                    is_dropping |= self._drop(action)
                elif isinstance(action, UseTxnIdentity):
                    self._txn_identity.take(action.producer_id, action.producer_epoch)
                elif isinstance(action, WakeAt):
                    self._txn_wake_at_ms = action.at_ms
                else:
                    self._actions.append(action)
        return self._manager.state is TxnProducerState.FATAL_ERROR

    def _drop(self, action: DropBatches) -> bool:
        """Whether there was a batch to be dropped."""
        accumulator = self._accumulator
        if action.sent_too:
            doubtful = self._doubtful.union(self._requests.batches())
            batches = accumulator.abort_all()
            self._doubtful.clear()
            self._txn_identity.fail(action.error.error_code)
        else:
            doubtful = set()
            batches = [batch for batch in accumulator.unsent() if accumulator.withdraw(batch)]
        for batch in batches:
            batch.close()
            self._actions.append(FailBatch(batch, failures.dropped(action.error, batch in doubtful)))
        return bool(batches)

    def _outcome(self, error_code: ErrorCode, facts: BatchFacts) -> BatchOutcome:
        return transactional_produce_outcome(error_code, facts)

    def _end(self, _identity: ProducerIdentity, batch: ProducerBatch, error_code: ErrorCode) -> None:
        self._manager.batch_failed(error_code, was_numbered=batch.has_sequence)

    def _fail(self, batch: ProducerBatch, error: ProduceError, record_errors: RecordErrors | None = None) -> None:
        if self._accumulator.is_incomplete(batch):
            super()._fail(batch, error, record_errors)
            self._manager.batch_failed(error.error_code, was_numbered=batch.has_sequence)

    def _wake_at_ms(self, now_ms: int, delay_ms: int | None) -> int | None:
        return earlier(super()._wake_at_ms(now_ms, delay_ms), self._txn_wake_at_ms)
