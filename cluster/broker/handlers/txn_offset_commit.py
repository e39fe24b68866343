"""TxnOffsetCommit (28): offsets of a group that count once the transaction of a producer is committed."""

from __future__ import annotations

from typing import Any

from cluster.broker.exchange import Exchange
from cluster.broker.internal_topics import OFFSETS_TOPIC
from cluster.broker.pauses import Pauses
from cluster.broker.services import Services
from cluster.coordinator.group.records import TopicPartition
from cluster.coordinator.group.requests import NO_GENERATION, CommitRequest, MemberIdentity, OffsetToCommit
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import response_class

#: From this version on COORDINATOR_LOAD_IN_PROGRESS is understood.
LOADING_VERSION = 2
#: From this version on a producer says for which member it commits (KIP-447).
MEMBER_VERSION = 3


async def handle(services: Services, request: Any, exchange: Exchange) -> Any:
    pause = Pauses(services.shares)
    topics: dict[str, dict[int, Any]] = {}
    for topic in request.topics:
        entries = topics.setdefault(topic.name, {})
        for each in topic.partitions:
            entries[each.partition_index] = each
            await pause()
    errors: dict[TopicPartition, ErrorCode] = {}
    offsets: dict[TopicPartition, OffsetToCommit] = {}
    for name, entries in topics.items():
        for number, asked in entries.items():
            if services.metadata.partition(name, number) is None:
                errors[name, number] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                metadata = asked.committed_metadata or ""
                offsets[name, number] = OffsetToCommit(asked.committed_offset, metadata, asked.committed_leader_epoch)
            await pause()
    if offsets:
        errors |= await _commit(services, request, exchange, offsets)
    response = response_class(ApiKey.TXN_OFFSET_COMMIT)
    topic_class = response.TxnOffsetCommitResponseTopic
    answered = []
    for name, entries in topics.items():
        partitions = []
        for number in entries:
            code = errors[name, number]
            if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and exchange.api_version < LOADING_VERSION:
                code = ErrorCode.COORDINATOR_NOT_AVAILABLE
            partitions.append(topic_class.TxnOffsetCommitResponsePartition(partition_index=number, error_code=code))
            await pause()
        answered.append(topic_class(name=name, partitions=partitions))
        await pause()
    return response(topics=answered)


async def _commit(
    services: Services, request: Any, exchange: Exchange, offsets: dict[TopicPartition, OffsetToCommit]
) -> dict[TopicPartition, ErrorCode]:
    if not request.transactional_id:
        return dict.fromkeys(offsets, ErrorCode.INVALID_REQUEST)
    if min(request.producer_id, request.producer_epoch) < 0:
        return dict.fromkeys(offsets, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    partition = (OFFSETS_TOPIC, services.groups.partition_of(request.group_id))
    producer = request.producer_id, request.producer_epoch
    code, may_write = await services.verifier.verify_offsets(request.transactional_id, *producer, partition)
    if code is not ErrorCode.NONE:
        return dict.fromkeys(offsets, code)
    member = MemberIdentity("", None, NO_GENERATION)
    if exchange.api_version >= MEMBER_VERSION:
        member = MemberIdentity(request.member_id, request.group_instance_id, request.generation_id)
    asked = CommitRequest(request.group_id, member, offsets, *producer, client_host=exchange.client_host)
    return await services.groups.commit(asked, may_write)
