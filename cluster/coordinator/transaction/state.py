"""What a coordinator knows of one transactional id, and how a transition of it is completed.

Owns the states with their legal predecessors, the metadata and the transition it is about to make (Kafka's
TransactionState, TransactionMetadata and TxnTransitMetadata; docs/reference/kafka.md "States of a transaction").
Does not own how a transition is prepared (``transitions.py``) nor which requests do so (``request_decisions.py``).

A transition has two halves. *Prepared*, it is ``pending`` while its record is on its way into the log. Nothing but
that changes in memory, and every request that would change the transaction waits: CONCURRENT_TRANSACTIONS. *Completed*,
it is what the metadata says. The record is always first, so no answer tells what a failover could take back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple

from cluster.topic_partition import TopicPartition

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_TIMESTAMP = -1
MAX_PRODUCER_EPOCH = 32_767


class TransactionState(IntEnum):
    """The states, with the ids under which they are stored."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


_S = TransactionState

#: From which states each one can be reached.
VALID_PREVIOUS: Mapping[TransactionState, frozenset[TransactionState]] = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.ONGOING: frozenset({_S.ONGOING, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
    _S.PREPARE_ABORT: frozenset({_S.ONGOING, _S.PREPARE_EPOCH_FENCE}),
    _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
    _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
    _S.DEAD: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_EPOCH_FENCE: frozenset({_S.ONGOING}),
}
#: The outcome is decided; markers may still be missing.
PREPARED = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})
COMPLETED = frozenset({_S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
#: No transaction is open: a new one may begin, and the id may expire.
IDLE = COMPLETED | {_S.EMPTY}


class ProducerIdAndEpoch(NamedTuple):
    """What a producer believes itself to be."""

    producer_id: int
    producer_epoch: int


class IllegalTxnTransition(Exception):
    """A transition that cannot be: a caller's mistake, never a client's."""


@dataclass(frozen=True, slots=True)
class TransitMetadata:
    """Where a transition leads; it becomes the value of one record. Times are milliseconds since the epoch."""

    producer_id: int
    last_producer_id: int
    producer_epoch: int
    last_producer_epoch: int
    timeout_ms: int
    state: TransactionState
    topic_partitions: frozenset[TopicPartition]
    start_timestamp_ms: int
    last_update_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class TransactionMetadata:
    """One transactional id. ``topic_partitions``, once the outcome is decided, are those that still lack a marker.

    ``last_producer_id`` and ``last_producer_epoch`` are those that a retried InitProducerId may still carry (KIP-360).
    ``has_failed_epoch_fence``: the epoch was raised to fence a producer, but the record may not be in the log. No one
    was told of that epoch, so the next attempt uses it again. ``client_host`` is that of the client that made the id,
    empty if no client has used it since it was loaded: no record tells.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    last_update_timestamp_ms: int
    state: TransactionState = TransactionState.EMPTY
    topic_partitions: frozenset[TopicPartition] = field(default=frozenset())
    start_timestamp_ms: int = NO_TIMESTAMP
    last_producer_id: int = NO_PRODUCER_ID
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    pending: TransitMetadata | None = None
    has_failed_epoch_fence: bool = False
    client_host: str = field(default="", compare=False)

    def __repr__(self) -> str:
        pending = f" -> {self.pending.state.name}" if self.pending else ""
        producer = f"producer {self.producer_id} epoch {self.producer_epoch}"
        return f"TransactionMetadata({self.transactional_id!r}, {self.state.name}{pending}, {producer})"

    @property
    def has_had_transactions(self) -> bool:
        """False for an id that was only made; as far as is known."""
        return self.state is not TransactionState.EMPTY or self.producer_epoch > 0


def is_epoch_exhausted(producer_epoch: int) -> bool:
    """Whether no producer may get a later epoch: the last one is kept, so that the producer can still be fenced."""
    return producer_epoch >= MAX_PRODUCER_EPOCH - 1


def used_from(metadata: TransactionMetadata, client_host: str) -> TransactionMetadata:
    """An id counts for the first host from which it is used after it was loaded."""
    return replace(metadata, client_host=client_host) if client_host and not metadata.client_host else metadata


def without_pending(metadata: TransactionMetadata) -> TransactionMetadata:
    """The same, its transition abandoned."""
    return replace(metadata, pending=None)


def complete_transition(metadata: TransactionMetadata, transit: TransitMetadata) -> TransactionMetadata:
    """What the metadata is once the record of ``transit`` is in the log. Raises ``IllegalTxnTransition``."""
    if metadata.pending is None or metadata.pending.state is not transit.state:
        raise IllegalTxnTransition(f"{metadata} completes {transit}, which is not pending")
    if not _is_consistent(metadata, transit):
        raise IllegalTxnTransition(f"{metadata} cannot become {transit}")
    return replace(
        metadata,
        producer_id=transit.producer_id,
        last_producer_id=transit.last_producer_id if transit.state is _S.EMPTY else metadata.last_producer_id,
        producer_epoch=transit.producer_epoch,
        last_producer_epoch=(
            transit.last_producer_epoch if transit.state is _S.EMPTY else metadata.last_producer_epoch
        ),
        timeout_ms=transit.timeout_ms,
        state=transit.state,
        topic_partitions=transit.topic_partitions,
        start_timestamp_ms=transit.start_timestamp_ms,
        last_update_timestamp_ms=transit.last_update_timestamp_ms,
        pending=None,
    )


def _is_consistent(metadata: TransactionMetadata, transit: TransitMetadata) -> bool:
    """The conditions of Kafka's ``completeTransitionTo``: epoch, producer id, partitions, timeout and times."""
    if transit.last_update_timestamp_ms < metadata.last_update_timestamp_ms:
        return False
    if transit.state is _S.EMPTY:
        is_next_epoch = transit.producer_epoch in (metadata.producer_epoch, metadata.producer_epoch + 1)
        is_rotated = transit.producer_epoch == 0 and transit.producer_id != metadata.producer_id
        is_same_producer = transit.producer_id == metadata.producer_id and is_next_epoch
        starts_empty = not transit.topic_partitions and transit.start_timestamp_ms == NO_TIMESTAMP
        return (is_same_producer or is_rotated) and starts_empty
    if (transit.producer_id, transit.producer_epoch) != (metadata.producer_id, metadata.producer_epoch):
        return False
    if transit.timeout_ms != metadata.timeout_ms or transit.start_timestamp_ms == NO_TIMESTAMP:
        return False
    if transit.state is _S.ONGOING:
        return metadata.topic_partitions <= transit.topic_partitions
    is_same_start = transit.start_timestamp_ms == metadata.start_timestamp_ms
    if transit.state in PREPARED:
        return transit.topic_partitions == metadata.topic_partitions and is_same_start
    # A fence is never stored, and what is dead is removed rather than changed.
    return transit.state in COMPLETED and not transit.topic_partitions and is_same_start
