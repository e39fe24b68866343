"""When a partition's batches are to be sent: linger, back-off and leaders, as pure functions (RecordAccumulator.ready).

Owns the reasons. Does not own the queues (``accumulator.py``) nor who may send next (``idempotence.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cluster.client.cluster_view import ClusterView

if TYPE_CHECKING:
    from cluster.client.producer.batch import ProducerBatch
    from cluster.topic_partition import TopicPartition

NO_LEADER = (-1, -1)


class Ready(NamedTuple):
    """``nodes`` have something to be sent, ``leaders`` that or something that waits; ``next_check_delay_ms`` is when
    more will be, None if only by an event.
    """

    nodes: set[int]
    leaders: set[int]
    next_check_delay_ms: int | None
    unknown_leader_topics: set[str]


def leader_of(view: ClusterView, topic_partition: TopicPartition) -> tuple[int, int]:
    """Leader and leader epoch of a partition; ``NO_LEADER`` if none is known."""
    topic = view.topics.get(topic_partition[0])
    partition = None if topic is None else topic.partitions.get(topic_partition[1])
    if partition is None or partition.leader < 0:
        return NO_LEADER
    return partition.leader, partition.leader_epoch


def backoff_left_ms(batch: ProducerBatch, retry_at_ms: int, leader_epoch: int, now_ms: int) -> int:
    """How long a retried batch still waits; not at all for a leader that is newer than its last attempt (KIP-951)."""
    if leader_epoch > batch.leader_epoch_at_attempt >= 0:
        return 0
    return max(0, retry_at_ms - now_ms)


def linger_left_ms(batch: ProducerBatch, is_urgent: bool, linger_ms: int, now_ms: int) -> int:
    """How long the head of a queue still waits to be filled; ``is_urgent``: more is queued, or a caller waits."""
    if is_urgent or batch.attempts > 0 or batch.is_full:
        return 0
    return max(0, batch.created_ms + linger_ms - now_ms)


def earlier(one: int | None, other: int | None) -> int | None:
    """The earlier of two times; None is never."""
    if one is None:
        return other
    return one if other is None or one <= other else other
