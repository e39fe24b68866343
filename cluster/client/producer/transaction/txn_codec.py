"""The six requests of a transactional producer as Kafka's messages, and their answers as values (KIP-98, KIP-447).

Owns which field says what in which version. Does not own versions' negotiation, connections, nor what an answer means
(``answers.py``). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster.client.cluster_view import BrokerAddress
from cluster.client.group_metadata import ConsumerGroupMetadata
from cluster.client.producer.transaction.txn_requests import (
    AddTxnOffsets,
    AddTxnPartitions,
    CommitTxnOffsets,
    CoordinatorKind,
    EndTransaction,
    FindTxnCoordinator,
    InitTxnProducerId,
    TxnAnswer,
    TxnRequest,
)
from cluster.protocol.apis import ApiKey
from cluster.protocol.by_topic import by_topic
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    InitProducerIdRequest,
    Message,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from cluster.topic_partition import TopicPartition

API_OF: Mapping[type[TxnRequest], ApiKey] = {
    FindTxnCoordinator: ApiKey.FIND_COORDINATOR,
    InitTxnProducerId: ApiKey.INIT_PRODUCER_ID,
    AddTxnPartitions: ApiKey.ADD_PARTITIONS_TO_TXN,
    AddTxnOffsets: ApiKey.ADD_OFFSETS_TO_TXN,
    CommitTxnOffsets: ApiKey.TXN_OFFSET_COMMIT,
    EndTransaction: ApiKey.END_TXN,
}
#: The least versions that can say what some requests have to.
_WITH_KEY_TYPE = 1
#: Of InitProducerId: an id and epoch whose epoch is to be raised (KIP-360).
BUMP_VERSION = 3
_WITH_GENERATION = 3
_BATCHED_COORDINATORS = 4


def least_version(request: TxnRequest) -> int:
    """The least version that carries all of ``request``: an older one would mean something else."""
    if isinstance(request, FindTxnCoordinator):
        return _WITH_KEY_TYPE if request.key.kind is CoordinatorKind.TRANSACTION else 0
    if isinstance(request, InitTxnProducerId):
        return BUMP_VERSION if request.is_epoch_bump else 0
    if isinstance(request, CommitTxnOffsets):
        # Without them, a member that was replaced could not be fenced.
        return 0 if request.group == ConsumerGroupMetadata(request.group.group_id) else _WITH_GENERATION
    return 0


def message_of(request: TxnRequest) -> Message:
    """The message, for any version from ``least_version`` on."""
    if isinstance(request, FindTxnCoordinator):
        key = request.key.key
        return FindCoordinatorRequest(key=key, key_type=request.key.kind.value, coordinator_keys=[key])
    identity = request.identity
    who: dict[str, Any] = identity._asdict()
    if isinstance(request, InitTxnProducerId):
        return InitProducerIdRequest(**who, transaction_timeout_ms=request.timeout_ms)
    if isinstance(request, AddTxnPartitions):
        struct = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        grouped = by_topic(request.topic_partitions)
        return AddPartitionsToTxnRequest(
            **{f"v3_and_below_{name}": value for name, value in who.items()},
            v3_and_below_topics=[struct(name=topic, partitions=numbers) for topic, numbers in grouped.items()],
        )
    if isinstance(request, AddTxnOffsets):
        return AddOffsetsToTxnRequest(**who, group_id=request.group.group_id)
    if isinstance(request, CommitTxnOffsets):
        return TxnOffsetCommitRequest(**who, **request.group._asdict(), topics=_offset_topics(request))
    return EndTxnRequest(**who, committed=request.commit)


def _offset_topics(request: CommitTxnOffsets) -> list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic]:
    topic_struct = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    topics = []
    for topic, numbers in by_topic(request.offsets).items():
        partitions = []
        for number in numbers:
            offset, leader_epoch, metadata = request.offsets[topic, number]
            partitions.append(
                topic_struct.TxnOffsetCommitRequestPartition(
                    partition_index=number,
                    committed_offset=offset,
                    committed_leader_epoch=leader_epoch,
                    committed_metadata=metadata,
                )
            )
        topics.append(topic_struct(name=topic, partitions=partitions))
    return topics


def answer_of(request: TxnRequest, response: Any, version: int) -> TxnAnswer:
    """What the response says; ``version`` is that of the request."""
    if isinstance(request, FindTxnCoordinator):
        found = _found(response, version)
        if found is None:
            return TxnAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return TxnAnswer(ErrorCode.of(found.error_code), found.node_id)
    if isinstance(request, AddTxnPartitions):
        return TxnAnswer(partitions=_added(response))
    if isinstance(request, CommitTxnOffsets):
        return TxnAnswer(partitions=_committed(response))
    code = ErrorCode.of(response.error_code)
    if isinstance(request, InitTxnProducerId):
        return TxnAnswer(code, producer_id=response.producer_id, producer_epoch=response.producer_epoch)
    return TxnAnswer(code)


def coordinator_address(response: FindCoordinatorResponse, version: int) -> BrokerAddress | None:
    """How to reach the coordinator that was found; None if none was."""
    found = _found(response, version)
    if found is None or found.error_code != ErrorCode.NONE:
        return None
    return BrokerAddress(found.node_id, found.host, found.port)


def _found(
    response: FindCoordinatorResponse, version: int
) -> FindCoordinatorResponse | FindCoordinatorResponse.Coordinator | None:
    if version < _BATCHED_COORDINATORS:
        return response
    return response.coordinators[0] if response.coordinators else None


def _added(response: AddPartitionsToTxnResponse) -> dict[TopicPartition, ErrorCode]:
    return {
        (topic.name, each.partition_index): ErrorCode.of(each.partition_error_code)
        for topic in response.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    }


def _committed(response: TxnOffsetCommitResponse) -> dict[TopicPartition, ErrorCode]:
    return {
        (topic.name, each.partition_index): ErrorCode.of(each.error_code)
        for topic in response.topics
        for each in topic.partitions
    }
