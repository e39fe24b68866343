"""What the shell reports of the effects of a decision, and how the transition continues.

Owns the order of things: a record is appended, only what is in the log is answered, then come markers, and the record
that all are written. The shell reports each effect exactly once: ``appended`` for a record, ``markers_answered`` for
markers. What was begun in another epoch of the partition is recognized and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cluster.coordinator.transaction.decisions import (
    AppendRecord,
    SendMarkers,
    TransactionMarkers,
    TxnDecision,
    coordinator_error,
    refusal,
)
from cluster.coordinator.transaction.effects import DONE, begin_append, begin_completion
from cluster.coordinator.transaction.markers import awaits, sort_answers
from cluster.coordinator.transaction.ownership import OwnedPartitions, ServedPartition
from cluster.coordinator.transaction.state import (
    COMPLETED,
    PREPARED,
    IllegalTxnTransition,
    TransactionMetadata,
    TransactionState,
    complete_transition,
    without_pending,
)
from cluster.coordinator.transaction.transitions import marker_written
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition


def appended(owned: OwnedPartitions, append: AppendRecord, error_code: ErrorCode, now_ms: int) -> TxnDecision:
    """The record is in the log of every replica in sync, or the append failed. The answer is the request's."""
    error = coordinator_error(error_code)
    served = owned.find_in_epoch(append.transaction_partition, append.coordinator_epoch)
    if isinstance(served, ErrorCode):
        return refusal(served if error is ErrorCode.NONE else error)
    metadata = served.transactions.get(append.transactional_id)
    if metadata is None or metadata.pending != append.transit:
        raise IllegalTxnTransition(f"{metadata} awaits no such record: {append}")
    if error is not ErrorCode.NONE:
        return _append_failed(served, metadata, append, error)
    if append.transit.state is TransactionState.DEAD:
        served.remove(append.transactional_id)
        return TxnDecision(append.answer)
    completed = complete_transition(metadata, append.transit)
    served.put(completed)
    if completed.state not in PREPARED:
        return TxnDecision(append.answer)
    effect = begin_completion(append.transaction_partition, served, completed, now_ms)
    return TxnDecision(append.answer, (effect,))


def _append_failed(
    served: ServedPartition, metadata: TransactionMetadata, append: AppendRecord, error: ErrorCode
) -> TxnDecision:
    """Back to what was, and the client may ask again. The record of completed markers is tried until it succeeds or
    the partition is left; Kafka does so after COORDINATOR_NOT_AVAILABLE alone."""
    if append.transit.state in COMPLETED:
        return TxnDecision(effects=(replace(append, is_retry=True),))
    has_failed = metadata.has_failed_epoch_fence or append.is_epoch_fence
    served.put(replace(without_pending(metadata), has_failed_epoch_fence=has_failed))
    return refusal(error)


def markers_answered(
    owned: OwnedPartitions, markers: TransactionMarkers, errors: Mapping[TopicPartition, ErrorCode] | None
) -> TxnDecision:
    """What the leaders said about the markers that were sent to them; None if the connection was lost."""
    partition = markers.transaction_partition
    served = owned.find_in_epoch(partition, markers.coordinator_epoch)
    if isinstance(served, ErrorCode):
        return TxnDecision()
    metadata = served.transactions.get(markers.transactional_id)
    if metadata is None or not awaits(metadata, markers):
        raise IllegalTxnTransition(f"{metadata} awaits no such markers: {markers}")
    answers = sort_answers(markers, errors)
    metadata = marker_written(metadata, answers.done)
    served.put(metadata)
    if answers.is_abandoned:
        return TxnDecision()
    if answers.retry:
        return TxnDecision(effects=(SendMarkers(replace(markers, topic_partitions=answers.retry), is_retry=True),))
    if metadata.topic_partitions:
        return TxnDecision()
    return TxnDecision(effects=(begin_append(partition, served, metadata, DONE),))
