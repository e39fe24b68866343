"""What this broker answers to Metadata: the live brokers, topics and partitions, as the controller last told it.

Owns the cache and the application of UpdateMetadata (Kafka's ZkMetadataCache). Does not own the fence in front of it,
nor what a client is answered. Event loop only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from cluster.controller.context import LEADER_DURING_DELETE
from cluster.metadata.znodes import Endpoint
from cluster.protocol.message_classes import UpdateMetadataRequest

_TopicState = UpdateMetadataRequest.UpdateMetadataTopicState

#: ``type`` of an UpdateMetadata request that names all topics there are.
FULL = 2


@dataclass(frozen=True, slots=True)
class LiveBroker:
    """One registered broker."""

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None

    def endpoint(self, listener: str) -> Endpoint | None:
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)


class PartitionMetadata(NamedTuple):
    """One partition. ``leader`` is -1 if there is none; ``partition_epoch`` is the version of its state node.

    A tuple, for an update names thousands, and those are made in a third of the time that a frozen class takes.
    """

    partition: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...]
    partition_epoch: int
    controller_epoch: int


@dataclass(slots=True)
class TopicMetadata:
    """One topic with the partitions that have, or had, a leader."""

    name: str
    topic_id: UUID
    partitions: dict[int, PartitionMetadata] = field(default_factory=dict)


class MetadataCache:
    """Filled by UpdateMetadata, and by the control plane with the controller's id and topic configurations."""

    def __init__(self) -> None:
        self.controller_id: int | None = None
        self.cluster_id: str | None = None
        self._brokers: dict[int, LiveBroker] = {}
        self._topics: dict[str, TopicMetadata] = {}
        self._names: dict[UUID, str] = {}
        self._configs: dict[str, Mapping[str, str]] = {}
        self._listeners: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return (
            f"MetadataCache(controller={self.controller_id}, brokers={sorted(self._brokers)}, "
            f"topics={len(self._topics)})"
        )

    def update(self, request: UpdateMetadataRequest) -> list[tuple[str, int]]:
        """Apply an UpdateMetadata request that passed the fence: its brokers replace ours, its partitions are merged.

        A full one (``type`` 2) replaces the topics too. Returns the (topic, partition) pairs that are gone with it.
        """
        self.controller_id = request.controller_id
        self._brokers = {broker.id: _live_broker(broker) for broker in request.live_brokers}
        before = self._topics
        if request.type == FULL:
            self._topics, self._names = {}, {}
        removed: list[tuple[str, int]] = []
        for topic_state in request.topic_states:
            for state in topic_state.partition_states:
                if state.leader == LEADER_DURING_DELETE:
                    removed.append((topic_state.topic_name, state.partition_index))
                    self._remove(topic_state.topic_name, state.partition_index)
                else:
                    self._topic_for(topic_state).partitions[state.partition_index] = _partition(state)
        if request.type == FULL:
            removed += self._forget_others(before)
        for listener in list(self._listeners):
            listener()
        return removed

    def _forget_others(self, before: Mapping[str, TopicMetadata]) -> list[tuple[str, int]]:
        """After a full update: what was there and is not anymore. A topic with another id is another topic."""
        removed = []
        for name, topic in before.items():
            now = self._topics.get(name)
            is_same = now is not None and now.topic_id == topic.topic_id
            if not is_same:
                self._configs.pop(name, None)
            kept = now.partitions if now is not None and is_same else {}
            removed += [(name, number) for number in topic.partitions if number not in kept]
        return removed

    def on_update(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` after each update, on the loop."""
        self._listeners.append(listener)

    def alive_brokers(self) -> list[LiveBroker]:
        """By id."""
        return [self._brokers[broker_id] for broker_id in sorted(self._brokers)]

    def is_alive(self, broker_id: int) -> bool:
        return broker_id in self._brokers

    def endpoint(self, broker_id: int, listener: str) -> Endpoint | None:
        """None if the broker is not alive or lacks that listener."""
        broker = self._brokers.get(broker_id)
        return None if broker is None else broker.endpoint(listener)

    def endpoints(self, broker_id: int) -> tuple[Endpoint, ...]:
        broker = self._brokers.get(broker_id)
        return () if broker is None else broker.endpoints

    def topic_names(self) -> list[str]:
        return sorted(self._topics)

    def topic(self, name: str) -> TopicMetadata | None:
        return self._topics.get(name)

    def topic_name(self, topic_id: UUID) -> str | None:
        return self._names.get(topic_id)

    def partition(self, topic: str, partition: int) -> PartitionMetadata | None:
        found = self._topics.get(topic)
        return None if found is None else found.partitions.get(partition)

    def topic_config(self, name: str) -> Mapping[str, str]:
        """What is set on the topic itself (Kafka's keys, texts); empty if nothing is, or it was not read yet."""
        return self._configs.get(name, {})

    def has_topic_config(self, name: str) -> bool:
        return name in self._configs

    def topics_with_config(self) -> list[str]:
        """Those of which ``has_topic_config`` is true."""
        return sorted(self._configs)

    def set_topic_config(self, name: str, config: Mapping[str, str]) -> None:
        self._configs[name] = dict(config)

    def _topic_for(self, topic_state: _TopicState) -> TopicMetadata:
        name = topic_state.topic_name
        topic_id = topic_state.topic_id or UUID(int=0)
        topic = self._topics.get(name)
        if topic is None or topic.topic_id != topic_id:
            # A name with another id is another topic: nothing known of the former one is true of it.
            if topic is not None:
                self._names.pop(topic.topic_id, None)
                self._configs.pop(name, None)
            topic = self._topics[name] = TopicMetadata(name, topic_id)
            self._names[topic_id] = name
        return topic

    def _remove(self, name: str, partition: int) -> None:
        topic = self._topics.get(name)
        if topic is not None:
            topic.partitions.pop(partition, None)
            if not topic.partitions:
                del self._topics[name]
                self._names.pop(topic.topic_id, None)
                self._configs.pop(name, None)


def _live_broker(broker: UpdateMetadataRequest.UpdateMetadataBroker) -> LiveBroker:
    endpoints = tuple(Endpoint(end.listener, end.host, end.port) for end in broker.endpoints)
    return LiveBroker(broker.id, endpoints, broker.rack)


def _partition(state: _TopicState.UpdateMetadataPartitionState) -> PartitionMetadata:
    return PartitionMetadata(
        state.partition_index,
        state.leader,
        state.leader_epoch,
        tuple(state.isr),
        tuple(state.replicas),
        tuple(state.offline_replicas),
        partition_epoch=state.zk_version,
        controller_epoch=state.controller_epoch,
    )
