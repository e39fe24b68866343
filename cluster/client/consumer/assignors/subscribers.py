"""What every assignor is given and returns, and the order of members.

Owns these shapes. Does not own the bytes of subscriptions (``cluster.protocol.consumer_protocol``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cluster.protocol.consumer_protocol import Subscription
from cluster.topic_partition import TopicPartition

#: Topic -> number of its partitions; a topic that is not known is not in it.
PartitionCounts = Mapping[str, int]
#: Member id -> what it is assigned. Every member is in it.
Divided = dict[str, list[TopicPartition]]


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A member of the group."""

    member_id: str
    subscription: Subscription
    group_instance_id: str | None = None

    def wants(self, topic: str) -> bool:
        return topic in self.subscription.topics


def in_order(subscribers: Iterable[Subscriber]) -> list[Subscriber]:
    """Static members first, by instance, so that a restart changes nothing; then the others by id."""
    return sorted(
        subscribers,
        key=lambda each: (
            each.group_instance_id is None,
            each.group_instance_id if each.group_instance_id is not None else each.member_id,
        ),
    )


def wanted_topics(counts: PartitionCounts, subscribers: Sequence[Subscriber]) -> list[str]:
    """Known topics that someone wants, sorted."""
    return sorted({topic for each in subscribers for topic in each.subscription.topics} & counts.keys())


def partitions_of(counts: PartitionCounts, topics: Iterable[str]) -> list[TopicPartition]:
    return [(topic, partition) for topic in topics for partition in range(counts[topic])]


def nothing(subscribers: Iterable[Subscriber]) -> Divided:
    return {each.member_id: [] for each in subscribers}
