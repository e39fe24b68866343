"""TxnOffsetCommit (28): offsets of a group that count once the transaction of a producer is committed."""

from __future__ import annotations

from cluster.broker.exchange import Exchange
from cluster.broker.handlers.committed_offsets import answered, asked_offsets
from cluster.broker.internal_topics import OFFSETS_TOPIC
from cluster.broker.pauses import Pauses
from cluster.broker.services import Services
from cluster.coordinator.group.requests import NO_GENERATION, CommitRequest, MemberIdentity, OffsetToCommit
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from cluster.topic_partition import TopicPartition

#: From this version on COORDINATOR_LOAD_IN_PROGRESS is understood.
LOADING_VERSION = 2
#: From this version on a producer says for which member it commits (KIP-447).
MEMBER_VERSION = 3

_Topic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
_Partition = _Topic.TxnOffsetCommitResponsePartition


async def handle(services: Services, request: TxnOffsetCommitRequest, exchange: Exchange) -> TxnOffsetCommitResponse:
    pause, version = Pauses(services.shares), exchange.api_version
    topics, offsets, errors = await asked_offsets(request.topics, services.metadata, pause)
    if offsets:
        errors |= await _commit(services, request, exchange, offsets)

    def partition(number: int, error_code: ErrorCode) -> _Partition:
        is_new = error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < LOADING_VERSION
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE if is_new else error_code
        return _Partition(partition_index=number, error_code=code)

    return TxnOffsetCommitResponse(topics=await answered(topics, errors, pause, _topic, partition))


def _topic(name: str, partitions: list[_Partition]) -> _Topic:
    return _Topic(name=name, partitions=partitions)


async def _commit(
    services: Services,
    request: TxnOffsetCommitRequest,
    exchange: Exchange,
    offsets: dict[TopicPartition, OffsetToCommit],
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
