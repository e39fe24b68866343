"""AlterPartitionReassignments (45): partitions move to other replicas, or the move is taken back (KIP-455).

The answer waits for no move. Of a partition that is named twice the last word counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cluster.broker.control.controller.epoch_fence import NOT_CONTROLLER_TEXT
from cluster.broker.exchange import Exchange
from cluster.broker.pauses import Pauses
from cluster.broker.services import Services
from cluster.controller.context import TopicPartition
from cluster.controller.reassignment import ReassignmentError
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse

_Topic = AlterPartitionReassignmentsResponse.ReassignableTopicResponse


async def handle(
    services: Services, request: AlterPartitionReassignmentsRequest, _exchange: Exchange
) -> AlterPartitionReassignmentsResponse:
    pause = Pauses(services.shares)
    moves = await _moves(request, pause)
    del request
    results = await services.control.apis.alter_reassignments(moves)
    if isinstance(results, ErrorCode):
        return AlterPartitionReassignmentsResponse(error_code=results, error_message=NOT_CONTROLLER_TEXT, responses=[])
    return await _answer(results, pause)


async def _moves(
    request: AlterPartitionReassignmentsRequest, pause: Pauses
) -> dict[str, dict[int, Sequence[int] | None]]:
    topics: dict[str, dict[int, Sequence[int] | None]] = {}
    for topic in request.topics:
        moves = topics.setdefault(topic.name, {})
        for each in topic.partitions:
            await pause()
            moves[each.partition_index] = each.replicas
        await pause()
    return topics


async def _answer(
    results: Mapping[TopicPartition, ReassignmentError | None], pause: Pauses
) -> AlterPartitionReassignmentsResponse:
    topics: dict[str, list[_Topic.ReassignablePartitionResponse]] = {}
    for topic_partition, error in results.items():
        await pause()
        topics.setdefault(topic_partition.topic, []).append(
            _Topic.ReassignablePartitionResponse(
                partition_index=topic_partition.partition,
                error_code=ErrorCode.NONE if error is None else error.error_code,
                error_message=None if error is None else error.message,
            )
        )
    return AlterPartitionReassignmentsResponse(
        error_code=ErrorCode.NONE,
        error_message=None,
        responses=[_Topic(name=name, partitions=partitions) for name, partitions in topics.items()],
    )
