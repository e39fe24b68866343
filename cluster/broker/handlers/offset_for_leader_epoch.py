"""OffsetForLeaderEpoch (23): where an epoch ends in our log (KIP-101, KIP-279, KIP-320)."""

from __future__ import annotations

from cluster.broker.exchange import Exchange
from cluster.broker.handlers.named_once import naming
from cluster.broker.portions import Steps
from cluster.broker.replicas.host import RequestRefused
from cluster.broker.services import Services
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse


def handle(
    services: Services, request: OffsetForLeaderEpochRequest, exchange: Exchange
) -> Steps[OffsetForLeaderEpochResponse]:
    topic_class = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
    wanted = yield from naming(
        (topic.topic, ((asked.partition, asked) for asked in topic.partitions)) for topic in request.topics
    )
    topics = []
    for name, entries in wanted.items():
        partitions = []
        for asked in entries.values():
            code, epoch, end_offset = ErrorCode.NONE, -1, -1
            try:
                partition = services.replicas.find(name, asked.partition)
                epoch, end_offset = partition.end_offset_for(asked.leader_epoch, asked.current_leader_epoch)
            except RequestRefused as error:
                code = error.error_code
            partitions.append(
                topic_class.EpochEndOffset(
                    error_code=code, partition=asked.partition, leader_epoch=epoch, end_offset=end_offset
                )
            )
            yield None
        topics.append(topic_class(topic=name, partitions=partitions))
        yield None
    return OffsetForLeaderEpochResponse(topics=topics)
