"""What is told about transactions and changes none: DescribeTransactions, ListTransactions, and whether partitions are
in one (KIP-664, KIP-890).

Owns the names of states, and which transactions a filter lets through. Does not own any layout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from cluster.coordinator.transaction import request_decisions
from cluster.coordinator.transaction.ownership import OwnedPartitions
from cluster.coordinator.transaction.state import TransactionMetadata, TransactionState
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition

#: ``PREPARE_COMMIT`` is PrepareCommit.
STATE_NAMES: Mapping[TransactionState, str] = {
    state: "".join(word.capitalize() for word in state.name.split("_")) for state in TransactionState
}
#: The states of which ListTransactions may ask; of another one it is told that there is none.
STATES = frozenset(STATE_NAMES.values())


@dataclass(frozen=True, slots=True)
class TransactionFilter:
    """What ListTransactions asks for; None lets all through. ``least_ms``: open for longer than that, or -1 for any."""

    states: Set[str] | None = None
    producer_ids: Set[int] | None = None
    least_ms: int = -1

    def has(self, metadata: TransactionMetadata, now_ms: int) -> bool:
        if self.states is not None and STATE_NAMES[metadata.state] not in self.states:
            return False
        if self.producer_ids is not None and metadata.producer_id not in self.producer_ids:
            return False
        return self.least_ms < 0 or now_ms - metadata.start_timestamp_ms > self.least_ms


def describe(owned: OwnedPartitions, transactional_id: str) -> TransactionMetadata | ErrorCode:
    """What is known of an id, or the code to answer."""
    served = owned.find_of(transactional_id)
    if isinstance(served, ErrorCode):
        return served
    return served.transactions.get(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)


def listing(
    owned: OwnedPartitions, wanted: TransactionFilter, now_ms: int
) -> tuple[ErrorCode, Iterator[TransactionMetadata | None]]:
    """Those that the filter lets through, each as it is when it is asked for; None for any other. While a partition is
    loading, what others have is told together with the error; Kafka tells the error alone."""
    error_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if owned.loading else ErrorCode.NONE
    return error_code, _each(owned, wanted, now_ms)


def _each(owned: OwnedPartitions, wanted: TransactionFilter, now_ms: int) -> Iterator[TransactionMetadata | None]:
    for partition, transactional_id in owned.all_ids():
        served = owned.served.get(partition)
        metadata = None if served is None else served.transactions.get(transactional_id)
        yield metadata if metadata is not None and wanted.has(metadata, now_ms) else None


def verify_partitions(
    owned: OwnedPartitions,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    topic_partitions: Set[TopicPartition],
) -> dict[TopicPartition, ErrorCode]:
    """Whether each partition is in the open transaction of that producer."""
    if not transactional_id:
        return dict.fromkeys(topic_partitions, ErrorCode.INVALID_REQUEST)
    served = owned.find_of(transactional_id)
    if isinstance(served, ErrorCode):
        return dict.fromkeys(topic_partitions, served)
    metadata = served.transactions.get(transactional_id)
    found = request_decisions.verify_partitions(metadata, producer_id, producer_epoch, topic_partitions)
    return dict.fromkeys(topic_partitions, found) if isinstance(found, ErrorCode) else dict(found)
