"""OffsetCommit (8): a group, or a consumer without members, stores how far it has read."""

from __future__ import annotations

from typing import Any

from cluster.broker.exchange import Exchange
from cluster.broker.pauses import Pauses
from cluster.broker.services import Services
from cluster.coordinator.group.records import TopicPartition
from cluster.coordinator.group.requests import CommitRequest, MemberIdentity, OffsetToCommit
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import response_class


async def handle(services: Services, request: Any, exchange: Exchange) -> Any:
    response = response_class(ApiKey.OFFSET_COMMIT)
    pause = Pauses(services.shares)
    topics: dict[str, dict[int, Any]] = {}
    for topic in request.topics:
        for each in topic.partitions:
            topics.setdefault(topic.name, {})[each.partition_index] = each
            await pause()
        topics.setdefault(topic.name, {})
    errors: dict[TopicPartition, ErrorCode] = {}
    offsets: dict[TopicPartition, OffsetToCommit] = {}
    for name, entries in topics.items():
        for number, asked in entries.items():
            if services.metadata.partition(name, number) is None:
                errors[name, number] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                offsets[name, number] = OffsetToCommit(
                    asked.committed_offset,
                    asked.committed_metadata or "",
                    asked.committed_leader_epoch,
                    request.retention_time_ms,
                )
            await pause()
    if offsets:
        member = MemberIdentity(request.member_id, request.group_instance_id, request.generation_id_or_member_epoch)
        host = exchange.client_host
        errors |= await services.groups.commit(CommitRequest(request.group_id, member, offsets, client_host=host))
    topic_class = response.OffsetCommitResponseTopic
    answered = []
    for name, entries in topics.items():
        partitions = []
        for number in entries:
            error_code = errors[name, number]
            partitions.append(topic_class.OffsetCommitResponsePartition(partition_index=number, error_code=error_code))
            await pause()
        answered.append(topic_class(name=name, partitions=partitions))
        await pause()
    return response(topics=answered)
