"""AlterPartition 3 (KIP-497, KIP-903): ISR changes of a leader's partitions as one request, and the answers to them.

Owns the layout, in both directions and on both sides. Does not own what is proposed (``cluster.replication.isr``) nor
what is answered (``controller.isr_changes``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from cluster.isr import IsrAnswer, IsrProposal
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import AlterPartitionRequest, AlterPartitionResponse

VERSION = 3

#: A partition as AlterPartition names it: topic id and number.
PartitionId = tuple[UUID, int]

_NO_TOPIC = UUID(int=0)
_Asked = AlterPartitionRequest.TopicData
_Answered = AlterPartitionResponse.TopicData


def request_of(
    broker_id: int, broker_epoch: int, proposals: Mapping[PartitionId, IsrProposal]
) -> AlterPartitionRequest:
    """The request of a leader in the life ``broker_epoch``, which is also its own epoch in each ISR."""
    data_class = _Asked.PartitionData
    topics: dict[UUID, list[_Asked.PartitionData]] = {}
    for (topic_id, partition), proposal in proposals.items():
        members = [
            data_class.BrokerState(broker_id=member, broker_epoch=broker_epoch if member == broker_id else seen_epoch)
            for member, seen_epoch in proposal.isr
        ]
        topics.setdefault(topic_id, []).append(
            data_class(
                partition_index=partition,
                leader_epoch=proposal.leader_epoch,
                new_isr_with_epochs=members,
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


def proposals_in(request: AlterPartitionRequest) -> list[tuple[PartitionId, IsrProposal]]:
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


def response_of(answers: Iterable[tuple[PartitionId, IsrAnswer]]) -> AlterPartitionResponse:
    """The answer to all partitions of a request."""
    topics: dict[UUID, list[_Answered.PartitionData]] = {}
    for (topic_id, partition), answer in answers:
        topics.setdefault(topic_id, []).append(
            _Answered.PartitionData(
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
        version=VERSION,
        error_code=ErrorCode.NONE,
        topics=[_Answered(topic_id=topic_id, partitions=data) for topic_id, data in topics.items()],
    )


def refusal_of(error: ErrorCode) -> AlterPartitionResponse:
    """The answer that refuses a whole request."""
    return AlterPartitionResponse(version=VERSION, error_code=error, topics=[])


def answers_in(response: AlterPartitionResponse) -> dict[PartitionId, IsrAnswer]:
    """Of a response that refuses nothing as a whole."""
    return {
        (topic.topic_id or _NO_TOPIC, data.partition_index): IsrAnswer(
            error_code=error_of(data.error_code),
            leader_epoch=data.leader_epoch,
            isr=tuple(data.isr),
            partition_epoch=data.partition_epoch,
            leader_id=data.leader_id,
            recovering=data.leader_recovery_state == 1,
        )
        for topic in response.topics
        for data in topic.partitions
    }


def error_of(number: int) -> ErrorCode:
    """A code that no one knows is an unknown error."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
