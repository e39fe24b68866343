"""What the coordinator decides, as values: the answer to a request, a record to append, markers to send.

Owns these shapes alone, and the error codes that a failed append becomes. The shell carries out the effects in order
and reports back (``coordinator.py``). A request that has no answer yet gets the one that ``appended`` returns for its
record.
"""

from __future__ import annotations

from dataclasses import dataclass

from cluster.coordinator.transaction.records import encode_key, encode_value
from cluster.coordinator.transaction.state import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    TransitMetadata,
)
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class TransactionAnswer:
    """What goes out to the client. Producer id and epoch are those of InitProducerId."""

    error_code: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


@dataclass(frozen=True, slots=True)
class AppendRecord:
    """Append one record to a partition of ``__transaction_state``, with acks=all, and report to ``appended``.

    The append must fail unless this broker leads the partition in the leader epoch ``coordinator_epoch``. ``answer`` is
    what the client gets if all goes well. With ``is_retry`` the shell waits before it tries again.
    """

    transaction_partition: int
    coordinator_epoch: int
    transactional_id: str
    transit: TransitMetadata
    answer: TransactionAnswer
    is_epoch_fence: bool = False
    is_retry: bool = False

    @property
    def key(self) -> bytes:
        return encode_key(self.transactional_id)

    @property
    def value(self) -> bytes | None:
        """None is a tombstone."""
        return encode_value(self.transit)


@dataclass(frozen=True, slots=True)
class TransactionMarkers:
    """The markers of one transaction that some of its partitions still lack."""

    transaction_partition: int
    coordinator_epoch: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    commit: bool
    topic_partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class SendMarkers:
    """Have the leaders write these markers, and report what each partition says to ``markers_answered``.

    With ``is_retry`` the shell waits before it sends them.
    """

    markers: TransactionMarkers
    is_retry: bool = False


@dataclass(frozen=True, slots=True)
class DropMarkers:
    """Forget markers that wait to be sent for the transactions of one partition of ``__transaction_state``."""

    transaction_partition: int


TransactionEffect = AppendRecord | SendMarkers | DropMarkers


@dataclass(frozen=True, slots=True)
class TxnDecision:
    """``answer`` goes out now; without one the request waits for the record among the effects."""

    answer: TransactionAnswer | None = None
    effects: tuple[TransactionEffect, ...] = ()


def refusal(error_code: ErrorCode) -> TxnDecision:
    """An answer without producer id and epoch, and nothing else to do."""
    return TxnDecision(TransactionAnswer(error_code))


_UNAVAILABLE = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
_NOT_LEADING = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR})
_TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


def coordinator_error(append_error: ErrorCode) -> ErrorCode:
    """What a client is told when the append of its record failed (Kafka's ``appendTransactionToLog``)."""
    if append_error in _UNAVAILABLE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if append_error in _NOT_LEADING:
        return ErrorCode.NOT_COORDINATOR
    if append_error in _TOO_LARGE:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return append_error
