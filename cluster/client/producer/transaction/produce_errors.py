"""What the failure of a batch means for its transaction, and when a batch of a transaction is sent again.

Owns two pure functions, the transactional part of Kafka's Sender and TransactionManager (``canRetry``,
``handleFailedBatch``). Does not own the rest of what an answer to Produce means
(``cluster.client.producer.outcomes``), nor numbers.

A failed batch ends its transaction, so its numbers need not be given to others: after the abort every partition starts
from 0 under a new epoch. Where the coordinator cannot raise an epoch, Kafka lets later numbers move down if the failed
batch is certainly not stored; here the producer ends, as it does in Kafka in all other cases.
"""

from __future__ import annotations

from enum import Enum

from cluster.client.producer.outcomes import (
    FATAL_ERRORS,
    BatchFacts,
    BatchOutcome,
    BatchStep,
    produce_outcome,
)
from cluster.protocol.errors import ErrorCode


class FailureStep(Enum):
    """What becomes of the transaction whose batch has failed."""

    ABORTABLE = "abortable"
    ABORTABLE_AND_BUMP = "abortable and bump"
    FATAL = "fatal"


def failure_step(error_code: ErrorCode, *, was_numbered: bool, can_bump_epoch: bool) -> FailureStep:
    """``was_numbered``: the batch had a sequence, which leaves a gap.

    INVALID_PRODUCER_EPOCH is not fatal here: the coordinator may have aborted the transaction, and its answer to the
    abort says whether another producer was the reason.
    """
    if error_code in FATAL_ERRORS:
        return FailureStep.FATAL
    if can_bump_epoch:
        return FailureStep.ABORTABLE_AND_BUMP
    return FailureStep.FATAL if was_numbered else FailureStep.ABORTABLE


def transactional_produce_outcome(error_code: ErrorCode, facts: BatchFacts) -> BatchOutcome:
    """``produce_outcome`` for a batch of a transaction: numbers never start again within it.

    A gap before the first batch in flight cannot be filled: the batch fails, and the transaction with it. Kafka starts
    numbers again under the same epoch when the broker lost the producer with the head of its log; a batch that is
    stored could then be stored twice, in one transaction.
    """
    outcome = produce_outcome(error_code, facts)
    return BatchOutcome(BatchStep.FAIL) if outcome.restart else outcome
