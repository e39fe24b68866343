"""LeaderAndIsr (4): which replicas here lead, which follow, and whom.

Owns the layout, and the order of the effects: the topics' settings are known before a log is opened, all logs are
opened before one has a role. Does not own what a replica makes of its role (``replicas.roles``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cluster.broker.handlers.control_fence import ControllerOrigin, can_be, check
from cluster.broker.replicas.assignments import ReplicaAssignment, Role
from cluster.broker.services import Services
from cluster.metadata.store import SessionExpiredError
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import LeaderAndIsrRequest, LeaderAndIsrResponse
from cluster.topic_partition import TopicPartition

#: ``leader_recovery_state`` of a leader that was elected from outside the in-sync set.
RECOVERING = 1


async def handle(services: Services, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
    origin = ControllerOrigin.of(request)
    error = await check(services, ApiKey.LEADER_AND_ISR, origin, is_possible=_is_possible(request))
    codes: Mapping[TopicPartition, ErrorCode] = {}
    if error is ErrorCode.NONE:
        topics = [topic.topic_name for topic in request.topic_states]
        error, codes = await _carry_out(services, origin, topics, assignments(request))
    return _answer(request, error, codes)


def _is_possible(request: LeaderAndIsrRequest) -> bool:
    topics = request.topic_states
    states = [state for topic in topics for state in topic.partition_states]
    ids = [number for state in states for number in (state.partition_index, *state.replicas)]
    return all(topic.topic_id is not None for topic in topics) and can_be((topic.topic_name for topic in topics), ids)


def assignments(request: LeaderAndIsrRequest) -> list[ReplicaAssignment]:
    """The partitions of a decoded request."""
    return [
        ReplicaAssignment(
            topic.topic_name,
            topic.topic_id,
            state.partition_index,
            Role(
                state.leader,
                state.leader_epoch,
                state.partition_epoch,
                tuple(state.isr),
                tuple(state.replicas),
                is_unclean=state.leader_recovery_state == RECOVERING,
                adding=tuple(state.adding_replicas),
            ),
            is_new=state.is_new,
        )
        for topic in request.topic_states
        if topic.topic_id is not None
        for state in topic.partition_states
    ]


async def _carry_out(
    services: Services, origin: ControllerOrigin, topics: Sequence[str], asked: Sequence[ReplicaAssignment]
) -> tuple[ErrorCode, Mapping[TopicPartition, ErrorCode]]:
    """The code of the whole, and of each partition."""
    control, roles = services.control, services.roles
    try:
        # A log that is opened with the wrong settings is worse than one that is opened late.
        await control.load_topic_configs(topics)
    except SessionExpiredError:
        # We are being registered again, and the controller will tell that life of ours everything again.
        return ErrorCode.STALE_BROKER_EPOCH, {}
    # That took its time: another controller may have spoken meanwhile, and the last word is its own.
    error = control.check_control_request(origin.controller_epoch, origin.broker_epoch)
    if error is not ErrorCode.NONE:
        return error, {}
    if not roles.opens_logs(asked):
        return ErrorCode.NONE, roles.assign(asked)
    async with services.checkpoints.lock:
        await roles.open_logs(asked)
        # So did that.
        error = control.check_control_request(origin.controller_epoch, origin.broker_epoch)
        return (error, {}) if error is not ErrorCode.NONE else (error, roles.assign(asked))


def _answer(
    request: LeaderAndIsrRequest, error: ErrorCode, codes: Mapping[TopicPartition, ErrorCode]
) -> LeaderAndIsrResponse:
    topic_class = LeaderAndIsrResponse.LeaderAndIsrTopicError
    if error is not ErrorCode.NONE:
        return LeaderAndIsrResponse(error_code=error, topics=[])
    return LeaderAndIsrResponse(
        error_code=error,
        topics=[
            topic_class(
                topic_id=topic.topic_id,
                partition_errors=[
                    topic_class.LeaderAndIsrPartitionError(
                        partition_index=state.partition_index,
                        error_code=codes[(topic.topic_name, state.partition_index)],
                    )
                    for state in topic.partition_states
                ],
            )
            for topic in request.topic_states
        ],
    )
