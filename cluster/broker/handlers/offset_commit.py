"""OffsetCommit (8): a group, or a consumer without members, stores how far it has read."""

from __future__ import annotations

from typing import Any

from cluster.broker.exchange import Exchange
from cluster.broker.handlers.named_once import named
from cluster.broker.pauses import Pauses
from cluster.broker.services import Services
from cluster.coordinator.group.records import TopicPartition
from cluster.coordinator.group.requests import CommitRequest, MemberIdentity, OffsetToCommit
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import response_class


async def handle(services: Services, request: Any, _exchange: Exchange) -> Any:
    response = response_class(ApiKey.OFFSET_COMMIT)
    pause = Pauses(services.counters.now_ns)
    topics = named(
        (topic.name, ((each.partition_index, each) for each in topic.partitions)) for topic in request.topics
    )
    errors: dict[TopicPartition, ErrorCode] = {}
    offsets: dict[TopicPartition, OffsetToCommit] = {}
    for topic, entries in topics.items():
        for number, asked in entries.items():
            if services.metadata.partition(topic, number) is None:
                errors[topic, number] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                offsets[topic, number] = OffsetToCommit(
                    asked.committed_offset,
                    asked.committed_metadata or "",
                    asked.committed_leader_epoch,
                    request.retention_time_ms,
                )
            await pause()
    if offsets:
        member = MemberIdentity(request.member_id, request.group_instance_id, request.generation_id_or_member_epoch)
        errors |= await services.groups.commit(CommitRequest(request.group_id, member, offsets))
    topic_class = response.OffsetCommitResponseTopic
    answered = []
    for topic, entries in topics.items():
        partitions = [
            topic_class.OffsetCommitResponsePartition(partition_index=number, error_code=errors[topic, number])
            for number in entries
        ]
        answered.append(topic_class(name=topic, partitions=partitions))
        await pause()
    return response(topics=answered)
