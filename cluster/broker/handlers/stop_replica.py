"""StopReplica (5): replicas that are no longer wanted here, and which of their logs go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cluster.broker.handlers.control_fence import ControllerOrigin, can_be, check
from cluster.broker.replicas.assignments import ReplicaStop
from cluster.broker.services import Services
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import StopReplicaRequest, StopReplicaResponse
from cluster.topic_partition import TopicPartition


async def handle(services: Services, request: StopReplicaRequest) -> StopReplicaResponse:
    asked = _stops(request)
    is_possible = can_be((topic.topic_name for topic in request.topic_states), (stop.partition for stop in asked))
    error = await check(services, ApiKey.STOP_REPLICA, ControllerOrigin.of(request), is_possible=is_possible)
    codes = await _carry_out(services, asked) if error is ErrorCode.NONE else {}
    return StopReplicaResponse(
        error_code=error,
        partition_errors=[
            StopReplicaResponse.StopReplicaPartitionError(topic_name=topic, partition_index=partition, error_code=code)
            for (topic, partition), code in codes.items()
        ],
    )


def _stops(request: StopReplicaRequest) -> list[ReplicaStop]:
    return [
        ReplicaStop(topic.topic_name, state.partition_index, state.leader_epoch, state.delete_partition)
        for topic in request.topic_states
        for state in topic.partition_states
    ]


async def _carry_out(services: Services, asked: Sequence[ReplicaStop]) -> Mapping[TopicPartition, ErrorCode]:
    # A checkpoint that is being written names the log still; the deletion must have the last word.
    async with services.checkpoints.lock:
        return await services.roles.stop(asked)
