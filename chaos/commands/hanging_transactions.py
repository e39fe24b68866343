"""Which open transactions no coordinator will ever end: KIP-664's question, as rows. Pure.

A transaction hangs in a partition if it is open in the log, and its coordinator does not have the partition in a
transaction of that producer: then no marker will come, and the last stable offset stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cluster.client.partition_calls import ProducerState
from cluster.client.transaction_descriptions import DescribedTransaction
from cluster.topic_partition import TopicPartition

MS_PER_MINUTE = 60_000


class OpenTransaction(NamedTuple):
    """A transaction that is open in a log. An unknown epoch is -1. Times are record timestamps in ms."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp: int
    duration_minutes: int


def open_transactions(
    producers: Mapping[TopicPartition, Sequence[ProducerState]], longer_than_ms: int, now_ms: int
) -> list[OpenTransaction]:
    """The open transactions whose last record is older than ``longer_than_ms``, as in Kafka's tool."""
    return [
        OpenTransaction(
            *key,
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.current_txn_start_offset,
            each.last_timestamp,
            (now_ms - each.last_timestamp) // MS_PER_MINUTE,
        )
        for key, states in sorted(producers.items())
        for each in states
        if each.current_txn_start_offset >= 0 and now_ms - each.last_timestamp > longer_than_ms
    ]


def hanging(found: Iterable[OpenTransaction], described: Iterable[DescribedTransaction]) -> list[OpenTransaction]:
    """The transactions that no coordinator reported: they hang."""
    awaited = {(each.producer_id, key) for each in described for key in each.partitions}
    return [each for each in found if (each.producer_id, (each.topic, each.partition)) not in awaited]


def still_open(
    found: Iterable[OpenTransaction], producers: Mapping[TopicPartition, Sequence[ProducerState]]
) -> list[OpenTransaction]:
    """The transactions that are still open in a second query of the logs.

    The others were just ending: their marker came between the answers of the log and the coordinator.
    """
    there = {
        (key, each.producer_id, each.current_txn_start_offset) for key, states in producers.items() for each in states
    }
    return [each for each in found if ((each.topic, each.partition), each.producer_id, each.start_offset) in there]
