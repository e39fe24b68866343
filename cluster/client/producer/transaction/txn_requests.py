"""What a transactional producer asks, as values: the kind of the request, whom it goes to, and what is in it.

Owns these shapes and their order (Kafka's TransactionManager.Priority). Does not own wire objects, nor when one is sent
(``request_queue.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import NamedTuple

from cluster.client.committed_offset import OffsetAndMetadata
from cluster.client.group_metadata import ConsumerGroupMetadata
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1


class CoordinatorKind(Enum):
    """The key types of FindCoordinator, with their numbers."""

    GROUP = 0
    TRANSACTION = 1


class CoordinatorKey(NamedTuple):
    """Whose coordinator: that of a group or of a transactional id."""

    kind: CoordinatorKind
    key: str


class RequestPriority(IntEnum):
    """What goes first. EndTxn is last, but for the request that raises the epoch after it."""

    FIND_COORDINATOR = 0
    INIT_PRODUCER_ID = 1
    ADD_PARTITIONS_OR_OFFSETS = 2
    END_TXN = 3
    EPOCH_BUMP = 4


class TxnIdentity(NamedTuple):
    """What every request to the coordinator of a transaction names."""

    transactional_id: str
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


@dataclass(frozen=True, slots=True)
class FindTxnCoordinator:
    """FindCoordinator, to any node."""

    key: CoordinatorKey

    @property
    def priority(self) -> RequestPriority:
        return RequestPriority.FIND_COORDINATOR

    @property
    def coordinator(self) -> CoordinatorKey | None:
        return None


@dataclass(frozen=True, slots=True)
class _ToTxnCoordinator:
    identity: TxnIdentity

    @property
    def coordinator(self) -> CoordinatorKey | None:
        return CoordinatorKey(CoordinatorKind.TRANSACTION, self.identity.transactional_id)

    @property
    def priority(self) -> RequestPriority:
        return RequestPriority.ADD_PARTITIONS_OR_OFFSETS


@dataclass(frozen=True, slots=True)
class InitTxnProducerId(_ToTxnCoordinator):
    """InitProducerId. With the present id and epoch it raises the epoch and fences no one else (KIP-360)."""

    timeout_ms: int

    @property
    def is_epoch_bump(self) -> bool:
        return self.identity.producer_id != NO_PRODUCER_ID

    @property
    def priority(self) -> RequestPriority:
        return RequestPriority.EPOCH_BUMP if self.is_epoch_bump else RequestPriority.INIT_PRODUCER_ID


@dataclass(frozen=True, slots=True)
class AddTxnPartitions(_ToTxnCoordinator):
    """AddPartitionsToTxn. While it waits, ``topic_partitions`` is empty: what is due then is put in when it goes."""

    topic_partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class AddTxnOffsets(_ToTxnCoordinator):
    """AddOffsetsToTxn; what is to be committed follows in ``CommitTxnOffsets``."""

    group: ConsumerGroupMetadata
    offsets: Mapping[TopicPartition, OffsetAndMetadata]


@dataclass(frozen=True, slots=True)
class CommitTxnOffsets(_ToTxnCoordinator):
    """TxnOffsetCommit, to the coordinator of the group."""

    group: ConsumerGroupMetadata
    offsets: Mapping[TopicPartition, OffsetAndMetadata]

    @property
    def coordinator(self) -> CoordinatorKey | None:
        return CoordinatorKey(CoordinatorKind.GROUP, self.group.group_id)


@dataclass(frozen=True, slots=True)
class EndTransaction(_ToTxnCoordinator):
    """EndTxn."""

    commit: bool

    @property
    def priority(self) -> RequestPriority:
        return RequestPriority.END_TXN


TxnRequest = (
    FindTxnCoordinator | InitTxnProducerId | AddTxnPartitions | AddTxnOffsets | CommitTxnOffsets | EndTransaction
)
#: They make something part of the transaction; when it is to be aborted, they are of no use.
ADDITIONS = (AddTxnPartitions, AddTxnOffsets, CommitTxnOffsets)


@dataclass(frozen=True, slots=True)
class TxnAnswer:
    """What came back. ``partitions`` has the code of each partition where the API has one; ``error_code`` is for all.

    A lost connection is NETWORK_EXCEPTION, an answer that did not come in time REQUEST_TIMED_OUT, an API that the node
    does not serve UNSUPPORTED_VERSION.
    """

    error_code: ErrorCode = ErrorCode.NONE
    node: int = -1
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    partitions: Mapping[TopicPartition, ErrorCode] | None = None
