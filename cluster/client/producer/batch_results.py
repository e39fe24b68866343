"""BatchResults: what becomes of the batches of a request that has ended.

Owns which batches are completed, sent again, split or given up, and which may be stored without an acknowledgement.
Does not own what an error means (``outcomes.py``), when requests are sent (``sender.py``), or the calling of
``ProducerBatch.complete`` and ``fail``: those run callbacks, so they are actions, carried out without the lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cluster.client.producer import failures
from cluster.client.producer.accumulator import RecordAccumulator
from cluster.client.producer.actions import Action, BatchSplit, CompleteBatch, FailBatch, PartitionResult
from cluster.client.producer.delivery import ProduceError, RecordErrors
from cluster.client.producer.idempotence import ProducerIdentity
from cluster.client.producer.in_flight import RequestsInFlight
from cluster.client.producer.outcomes import BatchFacts, BatchOutcome, BatchStep, may_be_stored, produce_outcome
from cluster.client.producer.sender_settings import SenderSettings
from cluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from cluster.client.producer.batch import ProducerBatch


class BatchResults:
    """What a ``SenderCore`` is to requests that have ended."""

    def __init__(
        self,
        settings: SenderSettings,
        accumulator: RecordAccumulator,
        identity: ProducerIdentity | None,
        backoff_ms: Callable[[int], int],
    ) -> None:
        self._settings = settings
        self._accumulator = accumulator
        self._identity = identity
        self._backoff_ms = backoff_ms
        self._requests = RequestsInFlight()
        # Batches of which an attempt may have been stored without being acknowledged.
        self._doubtful: set[ProducerBatch] = set()
        self._stale_topics: set[str] = set()
        self._actions: list[Action] = []
        #: Batches that are sent again, and what their last attempt ended with; the owner takes them away.
        self.retried: list[tuple[ProducerBatch, ErrorCode]] = []

    def _judge(self, batch: ProducerBatch, result: PartitionResult, now_ms: int) -> None:
        """Carry out what a result means for one batch of a request that has ended."""
        if self._settings.max_in_flight == 1:
            self._accumulator.unmute((batch.topic, batch.partition))
        if result.error_code is ErrorCode.NONE:
            # As below for this outcome, which needs no facts: nearly every answer.
            if self._identity is not None:
                self._identity.completed(batch)
            if self._accumulator.withdraw(batch):
                self._doubtful.discard(batch)
                self._actions.append(CompleteBatch(batch, result.base_offset, result.log_append_time_ms))
            return
        outcome = self._outcome(result.error_code, self._facts(batch, result, now_ms))
        if outcome.step is BatchStep.COMPLETE and self._identity is not None:
            self._identity.completed(batch)
        if not self._accumulator.is_incomplete(batch):
            return
        if outcome.step is not BatchStep.COMPLETE and may_be_stored(result.error_code):
            self._doubtful.add(batch)
        if outcome.refresh_metadata:
            self._stale_topics.add(batch.topic)
        self._carry_out(outcome, batch, result, now_ms)

    def _carry_out(self, outcome: BatchOutcome, batch: ProducerBatch, result: PartitionResult, now_ms: int) -> None:
        if outcome.step is BatchStep.COMPLETE:
            self._accumulator.withdraw(batch)
            self._doubtful.discard(batch)
            base_offset = result.base_offset if outcome.is_offset_known else -1
            self._actions.append(CompleteBatch(batch, base_offset, result.log_append_time_ms))
        elif outcome.step is BatchStep.RETRY:
            if self._identity is not None:
                self._identity.returned(batch)
                if outcome.restart:
                    self._identity.restart((batch.topic, batch.partition))
            self._accumulator.reenqueue(batch, now_ms, self._backoff_ms(batch.attempts))
            self.retried.append((batch, result.error_code))
        elif outcome.step is BatchStep.SPLIT:
            parts = self._accumulator.split_and_reenqueue(batch, self._identity)
            self._actions.append(BatchSplit(batch))
            if batch in self._doubtful:
                self._doubtful.remove(batch)
                self._doubtful.update(parts)
        elif outcome.step is BatchStep.FATAL and self._identity is not None:
            self._end(self._identity, batch, result.error_code)
        else:
            self._fail(batch, *failures.refused(batch, result, batch in self._doubtful))

    # What is different in a transaction is in ``transactional_sender.py``.

    def _outcome(self, error_code: ErrorCode, facts: BatchFacts) -> BatchOutcome:
        return produce_outcome(error_code, facts)

    def _end(self, identity: ProducerIdentity, _batch: ProducerBatch, error_code: ErrorCode) -> None:
        """A refusal that no producer survives."""
        identity.fail(error_code)

    def _facts(self, batch: ProducerBatch, result: PartitionResult, now_ms: int) -> BatchFacts:
        identity = self._identity
        settings = self._settings
        position = (False, False) if identity is None else identity.position(batch)
        limits = settings.retries, now_ms - batch.created_ms, settings.delivery_timeout_ms
        facts = *limits, identity is not None, *position, result.log_start_offset
        return BatchFacts(batch.record_count, batch.attempts, *facts)

    def _fail(self, batch: ProducerBatch, error: ProduceError, record_errors: RecordErrors | None = None) -> None:
        if self._accumulator.withdraw(batch):
            if self._identity is not None:
                self._identity.failed(batch)
            self._doubtful.discard(batch)
            self._actions.append(FailBatch(batch, error, record_errors))

    def _abort_fatally(self) -> None:
        """Fail everything: of what was sent and not acknowledged, nothing is known."""
        code = self._identity.fatal_error if self._identity is not None else None
        doubtful = self._doubtful.union(self._requests.batches())
        for batch in self._accumulator.abort_all():
            error = failures.fatal(code or ErrorCode.UNKNOWN_SERVER_ERROR, batch in doubtful)
            self._actions.append(FailBatch(batch, error))
        self._doubtful.clear()
