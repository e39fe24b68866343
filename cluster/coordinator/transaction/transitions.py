"""The transitions of a transactional id, prepared: functions from metadata to metadata with ``pending`` set.

Owns what each ``prepare*`` of Kafka's TransactionMetadata computes. Each returns the metadata whose ``pending`` is the
record to write, or an error code where a client's request can be wrong. Does not own when each is due
(``request_decisions.py``, ``expiry.py``). ``IllegalTxnTransition`` is a mistake of the caller.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from cluster.coordinator.transaction.state import (
    IDLE,
    MAX_PRODUCER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_TIMESTAMP,
    PREPARED,
    VALID_PREVIOUS,
    IllegalTxnTransition,
    TransactionMetadata,
    TransactionState,
    TransitMetadata,
)
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition


def prepare_increment_producer_epoch(
    metadata: TransactionMetadata, timeout_ms: int, expected_epoch: int | None, now_ms: int
) -> TransactionMetadata | ErrorCode:
    """To EMPTY under the next epoch, for InitProducerId. PRODUCER_FENCED if the client's epoch is neither current nor
    the one before (KIP-360).

    Kafka fails where no epoch is left even if none is needed: a retry of the last possible request.
    """
    next_epoch = metadata.producer_epoch + 1
    if expected_epoch is None:
        # A new incarnation: no retry of the one before may succeed from now on.
        last_epoch = NO_PRODUCER_EPOCH
    elif metadata.producer_epoch == NO_PRODUCER_EPOCH or expected_epoch == metadata.producer_epoch:
        last_epoch = metadata.producer_epoch
    elif expected_epoch == metadata.last_producer_epoch:
        # The answer to the same request was lost: the epoch that it told is told again.
        next_epoch, last_epoch = metadata.producer_epoch, metadata.last_producer_epoch
    else:
        return ErrorCode.PRODUCER_FENCED
    if next_epoch >= MAX_PRODUCER_EPOCH:
        raise IllegalTxnTransition(f"{metadata} has no epoch left")
    return _prepare(
        metadata,
        TransactionState.EMPTY,
        now_ms,
        producer_epoch=next_epoch,
        last_producer_epoch=last_epoch,
        timeout_ms=timeout_ms,
        topic_partitions=frozenset(),
        start_timestamp_ms=NO_TIMESTAMP,
    )


def prepare_producer_id_rotation(
    metadata: TransactionMetadata, new_producer_id: int, timeout_ms: int, now_ms: int, *, record_last_epoch: bool
) -> TransactionMetadata:
    """To EMPTY under a new producer id and epoch 0, since no epoch is left under the old one."""
    if metadata.state not in IDLE:
        raise IllegalTxnTransition(f"{metadata} has a transaction and cannot change its producer id")
    return _prepare(
        metadata,
        TransactionState.EMPTY,
        now_ms,
        producer_id=new_producer_id,
        producer_epoch=0,
        last_producer_epoch=metadata.producer_epoch if record_last_epoch else NO_PRODUCER_EPOCH,
        timeout_ms=timeout_ms,
        topic_partitions=frozenset(),
        start_timestamp_ms=NO_TIMESTAMP,
    )


def prepare_add_partitions(
    metadata: TransactionMetadata, added: Set[TopicPartition], now_ms: int
) -> TransactionMetadata:
    """To ONGOING with more partitions. The transaction's time begins with its first ones."""
    return _prepare(
        metadata,
        TransactionState.ONGOING,
        now_ms,
        topic_partitions=metadata.topic_partitions | added,
        start_timestamp_ms=now_ms if metadata.state in IDLE else metadata.start_timestamp_ms,
    )


def prepare_abort_or_commit(metadata: TransactionMetadata, *, commit: bool, now_ms: int) -> TransactionMetadata:
    """To PREPARE_COMMIT or PREPARE_ABORT: the record of this transition is the decision."""
    state = TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT
    return _prepare(metadata, state, now_ms)


def prepare_fence_producer_epoch(metadata: TransactionMetadata) -> TransactionMetadata:
    """To PREPARE_EPOCH_FENCE under the next epoch, which no client is ever told. ``abort_fenced`` follows at once.

    Kafka refuses the last epoch even where a former attempt has used it already, and such a transaction hangs until a
    failover. Here it is used again.
    """
    if metadata.has_failed_epoch_fence:
        next_epoch = metadata.producer_epoch
    elif metadata.producer_epoch < MAX_PRODUCER_EPOCH:
        next_epoch = metadata.producer_epoch + 1
    else:
        raise IllegalTxnTransition(f"{metadata} cannot be fenced: its epoch is the last")
    return _prepare(
        metadata,
        TransactionState.PREPARE_EPOCH_FENCE,
        metadata.last_update_timestamp_ms,
        producer_epoch=next_epoch,
        last_producer_epoch=NO_PRODUCER_EPOCH,
    )


def abort_fenced(metadata: TransactionMetadata, now_ms: int) -> TransactionMetadata:
    """To PREPARE_ABORT under the epoch of the pending fence. The epoch counts at once: the old producer is fenced even
    while the record is on its way."""
    fence = metadata.pending
    if fence is None or fence.state is not TransactionState.PREPARE_EPOCH_FENCE:
        raise IllegalTxnTransition(f"{metadata} has no fence pending")
    fenced = replace(metadata, producer_epoch=fence.producer_epoch, last_producer_epoch=NO_PRODUCER_EPOCH, pending=None)
    return prepare_abort_or_commit(fenced, commit=False, now_ms=now_ms)


def prepare_complete(metadata: TransactionMetadata, now_ms: int) -> TransactionMetadata:
    """To the COMPLETE state of the decision; its record is written when no partition lacks its marker."""
    commits = metadata.state is TransactionState.PREPARE_COMMIT
    return _prepare(
        replace(metadata, has_failed_epoch_fence=False),
        TransactionState.COMPLETE_COMMIT if commits else TransactionState.COMPLETE_ABORT,
        now_ms,
        topic_partitions=frozenset(),
    )


def prepare_dead(metadata: TransactionMetadata) -> TransactionMetadata:
    """To DEAD: its record is a tombstone."""
    return _prepare(metadata, TransactionState.DEAD, metadata.last_update_timestamp_ms, topic_partitions=frozenset())


def marker_written(metadata: TransactionMetadata, topic_partitions: Set[TopicPartition]) -> TransactionMetadata:
    """The same, those partitions no longer lacking a marker."""
    if metadata.state not in PREPARED:
        raise IllegalTxnTransition(f"{metadata} has no markers to write")
    return replace(metadata, topic_partitions=metadata.topic_partitions - topic_partitions)


def _prepare(
    metadata: TransactionMetadata,
    state: TransactionState,
    now_ms: int,
    *,
    producer_id: int | None = None,
    producer_epoch: int | None = None,
    last_producer_epoch: int | None = None,
    timeout_ms: int | None = None,
    topic_partitions: frozenset[TopicPartition] | None = None,
    start_timestamp_ms: int | None = None,
) -> TransactionMetadata:
    """What is None stays as it is. The time of an update never goes back, even where the machine's clock does."""
    if metadata.pending is not None:
        raise IllegalTxnTransition(f"{metadata} prepares {state.name} while a transition is pending")
    if metadata.state not in VALID_PREVIOUS[state]:
        raise IllegalTxnTransition(f"{metadata} cannot become {state.name}")
    epoch = metadata.producer_epoch if producer_epoch is None else producer_epoch
    if epoch < 0 and state is not TransactionState.DEAD:
        raise IllegalTxnTransition(f"{metadata} prepares {state.name} with epoch {epoch}")
    kept_start = metadata.start_timestamp_ms
    transit = TransitMetadata(
        producer_id=metadata.producer_id if producer_id is None else producer_id,
        last_producer_id=metadata.producer_id,
        producer_epoch=epoch,
        last_producer_epoch=metadata.last_producer_epoch if last_producer_epoch is None else last_producer_epoch,
        timeout_ms=metadata.timeout_ms if timeout_ms is None else timeout_ms,
        state=state,
        topic_partitions=metadata.topic_partitions if topic_partitions is None else topic_partitions,
        start_timestamp_ms=kept_start if start_timestamp_ms is None else start_timestamp_ms,
        last_update_timestamp_ms=max(now_ms, metadata.last_update_timestamp_ms),
    )
    return replace(metadata, pending=transit)
