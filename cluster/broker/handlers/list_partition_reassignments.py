"""ListPartitionReassignments (46): which partitions are moving, and to which replicas (KIP-455)."""

from __future__ import annotations

from collections.abc import Iterable

from cluster.broker.control.controller.epoch_fence import NOT_CONTROLLER_TEXT
from cluster.broker.exchange import Exchange
from cluster.broker.pauses import Pauses
from cluster.broker.services import Services
from cluster.controller.context import TopicPartition
from cluster.controller.reassignment import Placement
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse

_Topic = ListPartitionReassignmentsResponse.OngoingTopicReassignment


async def handle(
    services: Services, request: ListPartitionReassignmentsRequest, _exchange: Exchange
) -> ListPartitionReassignmentsResponse:
    pause = Pauses(services.shares)
    asked = await _asked(request, pause)
    del request
    moving = await services.control.apis.list_reassignments(asked)
    if isinstance(moving, ErrorCode):
        return ListPartitionReassignmentsResponse(error_code=moving, error_message=NOT_CONTROLLER_TEXT, topics=[])
    return await _answer(moving, pause)


async def _asked(request: ListPartitionReassignmentsRequest, pause: Pauses) -> dict[str, set[int]] | None:
    """None: all there are."""
    if request.topics is None:
        return None
    asked: dict[str, set[int]] = {}
    for topic in request.topics:
        asked.setdefault(topic.name, set()).update(topic.partition_indexes)
        await pause()
    return asked


async def _answer(
    moving: Iterable[tuple[TopicPartition, Placement]], pause: Pauses
) -> ListPartitionReassignmentsResponse:
    topics: dict[str, list[_Topic.OngoingPartitionReassignment]] = {}
    for topic_partition, placement in moving:
        await pause()
        topics.setdefault(topic_partition.topic, []).append(
            _Topic.OngoingPartitionReassignment(
                partition_index=topic_partition.partition,
                replicas=[*placement.replicas],
                adding_replicas=[*placement.adding],
                removing_replicas=[*placement.removing],
            )
        )
    return ListPartitionReassignmentsResponse(
        error_code=ErrorCode.NONE,
        error_message=None,
        topics=[_Topic(name=name, partitions=partitions) for name, partitions in topics.items()],
    )
