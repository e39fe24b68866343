"""Metadata (3): brokers, topics and leaders, with the addresses of the listener that was asked.

Owns the answer (Kafka's KafkaApis). Does not own what is known, which the controller tells to ``MetadataCache``, nor
the asking for topics that clients only named (``topic_creation``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from uuid import UUID

from cluster.broker.exchange import Exchange
from cluster.broker.internal_topics import INTERNAL_TOPICS
from cluster.broker.metadata_cache import LiveBroker, MetadataCache, PartitionMetadata, TopicMetadata
from cluster.broker.portions import Steps
from cluster.metadata.znodes import Endpoint
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import MetadataRequest, MetadataResponse

#: Below this version LISTENER_NOT_FOUND is not known.
LISTENER_NOT_FOUND_VERSION = 6

_Topic = MetadataResponse.MetadataResponseTopic

_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def brokers_on(metadata: MetadataCache, listener: str) -> Iterator[tuple[LiveBroker, Endpoint]]:
    """The live brokers that have this listener, with where it is."""
    for broker in metadata.alive_brokers():
        endpoint = broker.endpoint(listener)
        if endpoint is not None:
            yield broker, endpoint


def controller_on(metadata: MetadataCache, listener: str) -> int:
    """The controller's broker id if it can be reached on this listener, else -1."""
    controller_id = metadata.controller_id
    if controller_id is None or metadata.endpoint(controller_id, listener) is None:
        return -1
    return controller_id


class MetadataHandler:
    """``create_topic`` is called with the name of an unknown topic that may be created; None if none may."""

    def __init__(self, metadata: MetadataCache, create_topic: Callable[[str], None] | None) -> None:
        self._metadata = metadata
        self._create_topic = create_topic

    def handle(self, request: MetadataRequest, exchange: Exchange) -> Steps[MetadataResponse]:
        metadata, listener = self._metadata, exchange.listener
        topics = yield from self._topics(request, exchange)
        return MetadataResponse(
            brokers=[
                MetadataResponse.MetadataResponseBroker(
                    node_id=broker.broker_id, host=end.host, port=end.port, rack=broker.rack
                )
                for broker, end in brokers_on(metadata, listener)
            ],
            cluster_id=metadata.cluster_id,
            controller_id=controller_on(metadata, listener),
            topics=topics,
        )

    def _topics(self, request: MetadataRequest, exchange: Exchange) -> Steps[list[_Topic]]:
        metadata = self._metadata
        topics = []
        if request.topics is None or (exchange.api_version == 0 and not request.topics):
            for name in metadata.topic_names():
                topic = metadata.topic(name)
                if topic is not None:
                    topics.append((yield from self._topic(topic, exchange)))
            return topics
        may_create = exchange.api_version < 4 or request.allow_auto_topic_creation
        # A set, as in Kafka: a topic is answered once however often it is named.
        wanted: dict[tuple[str | None, UUID | None], None] = {}
        for asked in request.topics:
            wanted[asked.name, asked.topic_id] = None
            yield None
        for asked_name, topic_id in wanted:
            topics.append((yield from self._asked(asked_name, topic_id, exchange, may_create)))
            yield None
        return topics

    def _asked(self, name: str | None, topic_id: UUID | None, exchange: Exchange, may_create: bool) -> Steps[_Topic]:
        metadata = self._metadata
        if name is None:
            # Version 12 asks by id.
            known = None if topic_id is None else metadata.topic_name(topic_id)
            if known is None:
                return _unknown(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id)
            name = known
        topic = metadata.topic(name)
        if topic is not None:
            return (yield from self._topic(topic, exchange))
        if not _TOPIC_NAME.fullmatch(name) or name in (".", ".."):
            return _unknown(ErrorCode.INVALID_TOPIC_EXCEPTION, name, None)
        if may_create and self._create_topic is not None:
            self._create_topic(name)
            return _unknown(ErrorCode.LEADER_NOT_AVAILABLE, name, None)
        return _unknown(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name, None)

    def _topic(self, topic: TopicMetadata, exchange: Exchange) -> Steps[_Topic]:
        partitions = []
        # Others may change it meanwhile.
        for number in sorted(topic.partitions):
            partition = topic.partitions.get(number)
            if partition is not None:
                partitions.append(self._partition(partition, exchange))
            yield None
        return _Topic(
            error_code=ErrorCode.NONE,
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=partitions,
        )

    def _partition(self, partition: PartitionMetadata, exchange: Exchange) -> _Topic.MetadataResponsePartition:
        metadata, version = self._metadata, exchange.api_version
        code, leader = ErrorCode.NONE, partition.leader
        if not metadata.is_alive(leader):
            code, leader = ErrorCode.LEADER_NOT_AVAILABLE, -1
        elif metadata.endpoint(leader, exchange.listener) is None:
            known = version >= LISTENER_NOT_FOUND_VERSION
            code, leader = ErrorCode.LISTENER_NOT_FOUND if known else ErrorCode.LEADER_NOT_AVAILABLE, -1
        replicas, isr = list(partition.replicas), list(partition.isr)
        if version == 0:
            alive = [replica for replica in replicas if metadata.is_alive(replica)]
            if code is ErrorCode.NONE and len(alive) < len(replicas):
                code = ErrorCode.REPLICA_NOT_AVAILABLE
            replicas, isr = alive, [member for member in isr if metadata.is_alive(member)]
        return _Topic.MetadataResponsePartition(
            error_code=code,
            partition_index=partition.partition,
            leader_id=leader,
            leader_epoch=partition.leader_epoch,
            replica_nodes=replicas,
            isr_nodes=isr,
            offline_replicas=[replica for replica in partition.replicas if not metadata.is_alive(replica)],
        )


def _unknown(code: ErrorCode, name: str | None, topic_id: UUID | None) -> _Topic:
    return _Topic(error_code=code, name=name, topic_id=topic_id, partitions=[])
