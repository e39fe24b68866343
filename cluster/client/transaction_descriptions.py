"""What an admin is told about transactions: listings and descriptions. Owns these shapes and their reading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from cluster.protocol.message_classes import DescribeTransactionsResponse
from cluster.topic_partition import TopicPartition

#: ``start_timestamp_ms`` of a transactional id that has no transaction.
NO_TRANSACTION = -1


@dataclass(frozen=True, slots=True)
class ListedTransaction:
    """A transactional id at its coordinator. ``state`` is Kafka's name of it, such as ``Ongoing``."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator_id: int


@dataclass(frozen=True, slots=True)
class DescribedTransaction:
    """``partitions`` are those that are in the open transaction, or still lack the marker of one that is decided."""

    transactional_id: str
    coordinator_id: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_timestamp_ms: int
    partitions: tuple[TopicPartition, ...]


class FencedProducer(NamedTuple):
    """Whom a coordinator takes for the producer of a transactional id now: no one uses this id and epoch."""

    producer_id: int
    producer_epoch: int


def described_transaction(
    told: DescribeTransactionsResponse.TransactionState, coordinator_id: int
) -> DescribedTransaction:
    """One transactional id of the answer of its coordinator."""
    return DescribedTransaction(
        told.transactional_id,
        coordinator_id,
        told.producer_id,
        told.producer_epoch,
        told.transaction_state,
        told.transaction_timeout_ms,
        told.transaction_start_time_ms,
        tuple((topic.topic, number) for topic in told.topics for number in topic.partitions),
    )
