"""What the controller knows: brokers, topics, partitions. Owns the values and their invariants, and no decision.

It is a cache of ZooKeeper and of the registered brokers, changed in place by the one task that executes decisions,
and only after the write to ZooKeeper has succeeded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

#: ``leader`` of a partition that no one can lead.
NO_LEADER = -1
#: ``leader`` in UpdateMetadata of a topic that is being deleted: drop it from caches.
LEADER_DURING_DELETE = -2
#: ``leader_epoch`` in StopReplica of a topic that is being deleted: passes the receiver's fence.
EPOCH_DURING_DELETE = -2
#: The leader epoch of a partition that has just been created.
INITIAL_LEADER_EPOCH = 0


class TopicPartition(NamedTuple):
    """A partition by name; it sorts by topic, then number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Who leads a partition. ``partition_epoch`` is the version of its state node (Kafka's ZkData)."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int = 0
    controller_epoch: int = 0
    recovering: bool = False


@dataclass(slots=True)
class Partition:
    """One partition: ``state`` is None while it is new, that is, before any of its replicas was alive.

    ``found_zxid`` is that of the write which made the state that the controller found when it took over, comparable
    with brokers' epochs.

    While it is moved (KIP-455) ``replicas`` holds those it goes to, in their order, then the others of those it comes
    from; ``adding`` are the new ones among them, ``removing`` those that will go.
    """

    replicas: tuple[int, ...]
    state: PartitionState | None = None
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    found_zxid: int = 0

    @property
    def is_moving(self) -> bool:
        return bool(self.adding or self.removing)


@dataclass(slots=True)
class Topic:
    """One topic. ``unclean`` allows a leader from outside the ISR; ``deleting`` stops all elections."""

    name: str
    topic_id: UUID
    partitions: dict[int, Partition] = field(default_factory=dict)
    unclean: bool = False
    deleting: bool = False


@dataclass(slots=True)
class Broker:
    """A registered broker. ``epoch`` is the czxid of its registration (KIP-380).

    ``offline`` are the replicas that it cannot host in this life, by its own answer (``replicasOnOfflineDirs`` of
    Kafka's ``ControllerContext``).
    """

    broker_id: int
    epoch: int
    shutting_down: bool = False
    offline: set[TopicPartition] = field(default_factory=set)


@dataclass(slots=True)
class ControllerContext:
    """All of it, as one controller of one epoch sees it."""

    controller_epoch: int
    brokers: dict[int, Broker] = field(default_factory=dict)
    topics: dict[str, Topic] = field(default_factory=dict)

    def __repr__(self) -> str:
        partitions = sum(len(topic.partitions) for topic in self.topics.values())
        return (
            f"ControllerContext(epoch={self.controller_epoch}, brokers={sorted(self.brokers)}, "
            f"topics={len(self.topics)}, partitions={partitions})"
        )

    def registered(self) -> frozenset[int]:
        """Brokers that requests can be sent to."""
        return frozenset(self.brokers)

    def eligible(self) -> frozenset[int]:
        """Brokers that may be given a partition to lead: registered and not shutting down."""
        return frozenset(broker.broker_id for broker in self.brokers.values() if not broker.shutting_down)

    def online(self, topic_partition: TopicPartition, brokers: frozenset[int]) -> frozenset[int]:
        """Those of ``brokers`` that can host a replica of this partition; they need not have one."""
        offline = {each for each in brokers if topic_partition in self.brokers[each].offline}
        return brokers - offline if offline else brokers

    def partition(self, topic_partition: TopicPartition) -> Partition | None:
        topic = self.topics.get(topic_partition.topic)
        return None if topic is None else topic.partitions.get(topic_partition.partition)

    def topic_by_id(self, topic_id: UUID) -> Topic | None:
        return next((topic for topic in self.topics.values() if topic.topic_id == topic_id), None)

    def partitions(self) -> Iterator[tuple[TopicPartition, Topic, Partition]]:
        """Every partition of every topic that is not being deleted, in order."""
        for name in sorted(self.topics):
            topic = self.topics[name]
            if not topic.deleting:
                for number in sorted(topic.partitions):
                    yield TopicPartition(name, number), topic, topic.partitions[number]

    def hosted_by(self, broker_id: int) -> list[TopicPartition]:
        """The partitions that have a replica on a broker."""
        return [tp for tp, _, partition in self.partitions() if broker_id in partition.replicas]
