"""What each request of a client makes of one transactional id: the next transition, or the error code to answer.

Owns the checks of Kafka's TransactionCoordinator in their order (docs/reference/kafka.md "Requests of a transaction").
Each function takes the metadata, or None for an id that is not known, and returns metadata whose ``pending`` is to be
written, or the code to answer at once. Does not own whether this broker is the coordinator, nor the record's way into
the log (``coordinator.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set

from cluster.coordinator.transaction.state import (
    IDLE,
    NO_PRODUCER_EPOCH,
    PREPARED,
    IllegalTxnTransition,
    ProducerIdAndEpoch,
    TransactionMetadata,
    TransactionState,
    is_epoch_exhausted,
)
from cluster.coordinator.transaction.transitions import (
    abort_fenced,
    prepare_abort_or_commit,
    prepare_add_partitions,
    prepare_fence_producer_epoch,
    prepare_increment_producer_epoch,
    prepare_producer_id_rotation,
)
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition

#: The next producer id, or None while none is at hand.
TakeProducerId = Callable[[], int | None]


def init_producer_id(
    metadata: TransactionMetadata,
    timeout_ms: int,
    expected: ProducerIdAndEpoch | None,
    take_producer_id: TakeProducerId,
    now_ms: int,
) -> TransactionMetadata | ErrorCode:
    """InitProducerId. A transaction that a former incarnation left open is aborted first, under an epoch that no one
    is told: the client is to ask again, and gets a later one."""
    if metadata.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if expected is not None and not _may_be(metadata, expected):
        return ErrorCode.PRODUCER_FENCED
    if metadata.state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if metadata.state is TransactionState.ONGOING:
        return abort_fenced(prepare_fence_producer_epoch(metadata), now_ms)
    if metadata.state not in IDLE:
        raise IllegalTxnTransition(f"{metadata} is never in that state between two requests")
    is_current = expected is None or expected.producer_epoch == metadata.producer_epoch
    if is_epoch_exhausted(metadata.producer_epoch) and is_current:
        new_producer_id = take_producer_id()
        if new_producer_id is None:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return prepare_producer_id_rotation(
            metadata, new_producer_id, timeout_ms, now_ms, record_last_epoch=expected is not None
        )
    expected_epoch = None if expected is None else expected.producer_epoch
    return prepare_increment_producer_epoch(metadata, timeout_ms, expected_epoch, now_ms)


def _may_be(metadata: TransactionMetadata, expected: ProducerIdAndEpoch) -> bool:
    """Whether a producer that believes to be ``expected`` may continue (KIP-360): the id is new here, or its own, or
    the one before, whose epochs were used up; the epoch itself is compared later."""
    if metadata.producer_epoch == NO_PRODUCER_EPOCH or expected.producer_id == metadata.producer_id:
        return True
    return expected.producer_id == metadata.last_producer_id and is_epoch_exhausted(expected.producer_epoch)


def add_partitions(
    metadata: TransactionMetadata | None,
    producer_id: int,
    producer_epoch: int,
    topic_partitions: Set[TopicPartition],
    now_ms: int,
) -> TransactionMetadata | ErrorCode:
    """AddPartitionsToTxn and AddOffsetsToTxn. NONE if the transaction has all of them: nothing is to be written."""
    known = _checked(metadata, producer_id, producer_epoch)
    if isinstance(known, ErrorCode):
        return known
    if known.pending is not None or known.state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if known.state is TransactionState.ONGOING and topic_partitions <= known.topic_partitions:
        return ErrorCode.NONE
    return prepare_add_partitions(known, topic_partitions, now_ms)


def verify_partitions(
    metadata: TransactionMetadata | None,
    producer_id: int,
    producer_epoch: int,
    topic_partitions: Set[TopicPartition],
) -> ErrorCode | Mapping[TopicPartition, ErrorCode]:
    """AddPartitionsToTxn of a broker that only asks whether partitions are in the transaction (KIP-890): one code for
    all, or one for each. What is pending does not count: an addition is one only once it is written."""
    known = _checked(metadata, producer_id, producer_epoch)
    if isinstance(known, ErrorCode):
        return known
    if known.state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return {
        each: ErrorCode.NONE if each in known.topic_partitions else ErrorCode.TRANSACTION_ABORTABLE
        for each in topic_partitions
    }


#: EndTxn in every state but ONGOING: (state, commit) -> the code. A decision that stands is never changed.
_SETTLED: Mapping[tuple[TransactionState, bool], ErrorCode] = {
    (TransactionState.EMPTY, True): ErrorCode.INVALID_TXN_STATE,
    (TransactionState.EMPTY, False): ErrorCode.INVALID_TXN_STATE,
    (TransactionState.PREPARE_COMMIT, True): ErrorCode.CONCURRENT_TRANSACTIONS,
    (TransactionState.PREPARE_COMMIT, False): ErrorCode.INVALID_TXN_STATE,
    (TransactionState.PREPARE_ABORT, True): ErrorCode.INVALID_TXN_STATE,
    (TransactionState.PREPARE_ABORT, False): ErrorCode.CONCURRENT_TRANSACTIONS,
    # A retry whose answer was lost.
    (TransactionState.COMPLETE_COMMIT, True): ErrorCode.NONE,
    (TransactionState.COMPLETE_COMMIT, False): ErrorCode.INVALID_TXN_STATE,
    (TransactionState.COMPLETE_ABORT, True): ErrorCode.INVALID_TXN_STATE,
    (TransactionState.COMPLETE_ABORT, False): ErrorCode.NONE,
}


def end_txn(
    metadata: TransactionMetadata | None, producer_id: int, producer_epoch: int, now_ms: int, *, commit: bool
) -> TransactionMetadata | ErrorCode:
    """EndTxn. While markers are being written the transition to COMPLETE is pending, so a retry is to wait."""
    known = _checked(metadata, producer_id, producer_epoch)
    if isinstance(known, ErrorCode):
        return known
    if known.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if known.state is TransactionState.ONGOING:
        return prepare_abort_or_commit(known, commit=commit, now_ms=now_ms)
    settled = _SETTLED.get((known.state, commit))
    if settled is None:
        raise IllegalTxnTransition(f"{known} is never in that state between two requests")
    return settled


def _checked(
    metadata: TransactionMetadata | None, producer_id: int, producer_epoch: int
) -> TransactionMetadata | ErrorCode:
    """The metadata, if it is this producer's in this very epoch."""
    if metadata is None or metadata.producer_id != producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if metadata.producer_epoch != producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    return metadata
