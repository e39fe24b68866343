"""OffsetCommit (8): a group, or a consumer without members, stores how far it has read."""

from __future__ import annotations

from cluster.broker.exchange import Exchange
from cluster.broker.handlers.committed_offsets import answered, asked_offsets
from cluster.broker.pauses import Pauses
from cluster.broker.services import Services
from cluster.coordinator.group.requests import CommitRequest, MemberIdentity
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import OffsetCommitRequest, OffsetCommitResponse

_Topic = OffsetCommitResponse.OffsetCommitResponseTopic
_Partition = _Topic.OffsetCommitResponsePartition


async def handle(services: Services, request: OffsetCommitRequest, exchange: Exchange) -> OffsetCommitResponse:
    pause = Pauses(services.shares)
    topics, offsets, errors = await asked_offsets(request.topics, services.metadata, pause, request.retention_time_ms)
    if offsets:
        member = MemberIdentity(request.member_id, request.group_instance_id, request.generation_id_or_member_epoch)
        host = exchange.client_host
        errors |= await services.groups.commit(CommitRequest(request.group_id, member, offsets, client_host=host))
    return OffsetCommitResponse(topics=await answered(topics, errors, pause, _topic, _partition))


def _topic(name: str, partitions: list[_Partition]) -> _Topic:
    return _Topic(name=name, partitions=partitions)


def _partition(number: int, error_code: ErrorCode) -> _Partition:
    return _Partition(partition_index=number, error_code=error_code)
