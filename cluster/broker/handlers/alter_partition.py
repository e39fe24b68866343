"""AlterPartition (56): a leader wants another ISR for some of its partitions (KIP-497, KIP-903). Between brokers.

``links.alter_partition`` has the same layout for the side that asks.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from cluster.broker.exchange import Exchange
from cluster.broker.services import Services
from cluster.isr import IsrAnswer, IsrProposal, PartitionId
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import AlterPartitionRequest, AlterPartitionResponse

_NO_TOPIC = UUID(int=0)
_Topic = AlterPartitionResponse.TopicData


async def handle(services: Services, request: AlterPartitionRequest, _exchange: Exchange) -> AlterPartitionResponse:
    answers = await services.control.apis.alter_partition(request.broker_id, request.broker_epoch, _proposals(request))
    if isinstance(answers, ErrorCode):
        return AlterPartitionResponse(error_code=answers, topics=[])
    return _answer(answers)


def _proposals(request: AlterPartitionRequest) -> list[tuple[PartitionId, IsrProposal]]:
    """In the request's order; a partition may be there twice."""
    return [
        (
            (topic.topic_id or _NO_TOPIC, data.partition_index),
            IsrProposal(
                leader_epoch=data.leader_epoch,
                partition_epoch=data.partition_epoch,
                isr=tuple((member.broker_id, member.broker_epoch) for member in data.new_isr_with_epochs),
                recovering=data.leader_recovery_state == 1,
            ),
        )
        for topic in request.topics
        for data in topic.partitions
    ]


def _answer(answers: Iterable[tuple[PartitionId, IsrAnswer]]) -> AlterPartitionResponse:
    topics: dict[UUID, list[_Topic.PartitionData]] = {}
    for (topic_id, partition), answer in answers:
        topics.setdefault(topic_id, []).append(
            _Topic.PartitionData(
                partition_index=partition,
                error_code=answer.error_code,
                leader_id=answer.leader_id,
                leader_epoch=answer.leader_epoch,
                isr=list(answer.isr),
                leader_recovery_state=int(answer.recovering),
                partition_epoch=answer.partition_epoch,
            )
        )
    return AlterPartitionResponse(
        error_code=ErrorCode.NONE,
        topics=[_Topic(topic_id=topic_id, partitions=data) for topic_id, data in topics.items()],
    )
