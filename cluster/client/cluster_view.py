"""What Metadata says about a cluster, as frozen values. Owns the shapes and their making from a response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import MetadataResponse
from cluster.topic_partition import TopicPartition

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """A live broker, as it advertises itself on the listener that was asked."""

    broker_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionView:
    """``leader`` is -1 when there is none; epochs and offline replicas depend on the version spoken."""

    partition: int
    error_code: ErrorCode
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicView:
    """``partitions`` by partition index; empty when ``error_code`` is not NONE."""

    name: str
    topic_id: UUID | None
    error_code: ErrorCode
    is_internal: bool
    partitions: dict[int, PartitionView]

    @property
    def is_ready(self) -> bool:
        """Whether every partition has a leader."""
        return (
            self.error_code is ErrorCode.NONE
            and bool(self.partitions)
            and all(view.error_code is ErrorCode.NONE and view.leader >= 0 for view in self.partitions.values())
        )


@dataclass(frozen=True, slots=True)
class ClusterView:
    """One Metadata answer. ``controller_id`` is -1 when it is not known."""

    cluster_id: str | None
    controller_id: int
    brokers: dict[int, BrokerAddress]
    topics: dict[str, TopicView]

    def partition(self, topic: str, partition: int) -> PartitionView | None:
        """A partition, as far as it is known."""
        described = self.topics.get(topic)
        return None if described is None else described.partitions.get(partition)

    def topic_id(self, topic: str) -> UUID | None:
        """The id of a topic, as far as it is known: one that is created again gets another."""
        described = self.topics.get(topic)
        return None if described is None else described.topic_id

    def has_broker(self, node_id: int) -> bool:
        """Whether it is a broker that metadata tell about: not -1 for none, which is also a bootstrap address's id."""
        return node_id >= 0 and node_id in self.brokers

    def by_leader(self, wanted: Mapping[TopicPartition, T]) -> dict[int, dict[TopicPartition, T]]:
        """What is wanted of partitions, by the broker id of their leader; by -1 where none is known."""
        found: dict[int, dict[TopicPartition, T]] = {}
        for key, value in wanted.items():
            described = self.partition(*key)
            found.setdefault(-1 if described is None else described.leader, {})[key] = value
        return found


def cluster_view(response: MetadataResponse) -> ClusterView:
    """The view of a MetadataResponse."""
    brokers = {
        broker.node_id: BrokerAddress(broker.node_id, broker.host, broker.port, broker.rack)
        for broker in response.brokers
    }
    topics = {topic.name: _topic_view(topic.name, topic) for topic in response.topics if topic.name is not None}
    return ClusterView(response.cluster_id, response.controller_id, brokers, topics)


def _topic_view(name: str, topic: MetadataResponse.MetadataResponseTopic) -> TopicView:
    partitions = {
        entry.partition_index: PartitionView(
            entry.partition_index,
            ErrorCode.of(entry.error_code),
            entry.leader_id,
            entry.leader_epoch,
            tuple(entry.replica_nodes),
            tuple(entry.isr_nodes),
            tuple(entry.offline_replicas),
        )
        for entry in topic.partitions
    }
    return TopicView(name, topic.topic_id, ErrorCode.of(topic.error_code), topic.is_internal, partitions)
