"""AlterPartition 3 (KIP-497, KIP-903) as a leader asks it: ISR changes as one request, and the answers to them.

Owns the layout on the asking side; ``handlers.alter_partition`` has the other one. Does not own what is proposed
(``cluster.replication.isr``).
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from cluster.isr import IsrAnswer, IsrProposal, PartitionId
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import AlterPartitionRequest, AlterPartitionResponse

VERSION = 3

_NO_TOPIC = UUID(int=0)
_Asked = AlterPartitionRequest.TopicData


def request_of(
    broker_id: int, broker_epoch: int, proposals: Iterable[tuple[PartitionId, IsrProposal]]
) -> AlterPartitionRequest:
    """The request of a leader in the life ``broker_epoch``."""
    data_class = _Asked.PartitionData
    topics: dict[UUID, list[_Asked.PartitionData]] = {}
    for (topic_id, partition), proposal in proposals:
        topics.setdefault(topic_id, []).append(
            data_class(
                partition_index=partition,
                leader_epoch=proposal.leader_epoch,
                new_isr_with_epochs=[
                    data_class.BrokerState(broker_id=member, broker_epoch=epoch) for member, epoch in proposal.isr
                ],
                leader_recovery_state=int(proposal.recovering),
                partition_epoch=proposal.partition_epoch,
            )
        )
    return AlterPartitionRequest(
        version=VERSION,
        broker_id=broker_id,
        broker_epoch=broker_epoch,
        topics=[_Asked(topic_id=topic_id, partitions=data) for topic_id, data in topics.items()],
    )


def answers_in(response: AlterPartitionResponse) -> list[tuple[PartitionId, IsrAnswer]] | ErrorCode:
    """The code if the whole request was refused."""
    if response.error_code != ErrorCode.NONE:
        return error_of(response.error_code)
    return [
        (
            (topic.topic_id or _NO_TOPIC, data.partition_index),
            IsrAnswer(
                error_code=error_of(data.error_code),
                leader_epoch=data.leader_epoch,
                isr=tuple(data.isr),
                partition_epoch=data.partition_epoch,
                leader_id=data.leader_id,
                recovering=data.leader_recovery_state == 1,
            ),
        )
        for topic in response.topics
        for data in topic.partitions
    ]


def error_of(number: int) -> ErrorCode:
    """A code that no one knows is an unknown error."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
