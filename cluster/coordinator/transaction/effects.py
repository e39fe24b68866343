"""Both ends of a record of ``__transaction_state``: the append that a transition needs, and what a decision entails.

Owns that metadata is kept with its transition pending before its record is asked for. Does not own which transition is
due (``request_decisions.py``, ``expiry.py``), nor what the result of an append means (``coordinator.py``).
"""

from __future__ import annotations

from cluster.coordinator.transaction.decisions import (
    AppendRecord,
    SendMarkers,
    TransactionAnswer,
    TransactionEffect,
    TransactionMarkers,
)
from cluster.coordinator.transaction.ownership import ServedPartition
from cluster.coordinator.transaction.state import (
    IllegalTxnTransition,
    TransactionMetadata,
    TransactionState,
    TransitMetadata,
)
from cluster.coordinator.transaction.transitions import prepare_complete
from cluster.protocol.errors import ErrorCode

DONE = TransactionAnswer(ErrorCode.NONE)


def begin_append(
    partition: int, served: ServedPartition, metadata: TransactionMetadata, answer: TransactionAnswer
) -> AppendRecord:
    """Keep the metadata with its transition pending; the record to append for it."""
    transit = metadata.pending
    if transit is None:
        raise IllegalTxnTransition(f"{metadata} has nothing to write")
    before = served.transactions.get(metadata.transactional_id)
    served.put(metadata)
    return AppendRecord(
        transaction_partition=partition,
        coordinator_epoch=served.coordinator_epoch,
        transactional_id=metadata.transactional_id,
        transit=transit,
        answer=answer,
        # The epoch is raised in memory alone until the abort is written.
        is_epoch_fence=before is not None and _is_fence(before, transit),
    )


def begin_completion(
    partition: int, served: ServedPartition, metadata: TransactionMetadata, now_ms: int
) -> TransactionEffect:
    """The outcome is in the log: send the markers, or write the completion where no partition needs one."""
    completing = prepare_complete(metadata, now_ms)
    if not metadata.topic_partitions:
        return begin_append(partition, served, completing, DONE)
    served.put(completing)
    return SendMarkers(
        TransactionMarkers(
            transaction_partition=partition,
            coordinator_epoch=served.coordinator_epoch,
            transactional_id=metadata.transactional_id,
            producer_id=metadata.producer_id,
            producer_epoch=metadata.producer_epoch,
            commit=metadata.state is TransactionState.PREPARE_COMMIT,
            topic_partitions=metadata.topic_partitions,
        )
    )


def _is_fence(before: TransactionMetadata, transit: TransitMetadata) -> bool:
    return transit.state is TransactionState.PREPARE_ABORT and transit.producer_epoch > before.producer_epoch
