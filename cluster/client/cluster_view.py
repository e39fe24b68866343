"""What Metadata says about a cluster, as frozen values. Owns the shapes and their making from a response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from cluster.protocol.errors import ErrorCode


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


def cluster_view(response: Any) -> ClusterView:
    """The view of a MetadataResponse."""
    brokers = {
        broker.node_id: BrokerAddress(broker.node_id, broker.host, broker.port, broker.rack)
        for broker in response.brokers
    }
    topics = {topic.name: _topic_view(topic) for topic in response.topics if topic.name is not None}
    return ClusterView(response.cluster_id, response.controller_id, brokers, topics)


def _topic_view(topic: Any) -> TopicView:
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
    return TopicView(topic.name, topic.topic_id, ErrorCode.of(topic.error_code), bool(topic.is_internal), partitions)
