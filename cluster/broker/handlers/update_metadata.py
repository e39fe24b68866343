"""UpdateMetadata (6): what the controller tells every broker of the cluster, and so that replicas here are not wanted.

Owns the answer. Does not own what is known: ``MetadataCache`` reads the message, of which much is kept as it is.
"""

from __future__ import annotations

from cluster.broker.handlers.control_fence import ControllerOrigin, can_be, check
from cluster.broker.replicas.assignments import ReplicaElsewhere
from cluster.broker.services import Services
from cluster.controller.context import LEADER_DURING_DELETE
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import UpdateMetadataRequest, UpdateMetadataResponse


async def handle(services: Services, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
    origin = ControllerOrigin.of(request)
    error = await check(services, ApiKey.UPDATE_METADATA, origin, is_possible=_is_possible(request))
    if error is ErrorCode.NONE:
        removed = services.metadata.update(request)
        services.roles.withdraw(_elsewhere(request, services.replicas.broker_id))
        # Before the answer: topics that get the same names are told of after it.
        await services.groups.forget_topics(removed)
    return UpdateMetadataResponse(error_code=error)


def _is_possible(request: UpdateMetadataRequest) -> bool:
    topics = request.topic_states
    ids = [broker.id for broker in request.live_brokers]
    for topic in topics:
        for state in topic.partition_states:
            ids += (state.partition_index, *state.replicas)
    return all(topic.topic_id is not None for topic in topics) and can_be((topic.topic_name for topic in topics), ids)


def _elsewhere(request: UpdateMetadataRequest, broker_id: int) -> list[ReplicaElsewhere]:
    """The partitions that ``broker_id`` has no replica of; deleted ones are not among them."""
    return [
        ReplicaElsewhere(
            topic.topic_name, topic.topic_id, state.partition_index, state.leader_epoch, tuple(state.replicas)
        )
        for topic in request.topic_states
        if topic.topic_id is not None
        for state in topic.partition_states
        if broker_id not in state.replicas and state.leader != LEADER_DURING_DELETE
    ]
