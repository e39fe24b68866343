"""LeaderAndIsr (4), StopReplica (5), UpdateMetadata (6): what the controller tells this broker.

Owns the order of the checks and of the effects. They come over the brokers' listener, or, from a controller in this
very process, through ``deliver``; one at a time in either case.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from cluster.broker.replicas.role_requests import assignments, elsewhere, stops
from cluster.broker.replicas.values import TopicPartition
from cluster.broker.services import Services
from cluster.controller.topics import is_legal_name
from cluster.metadata.store import SessionExpiredError
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import response_class

logger = logging.getLogger(__name__)


async def deliver(services: Services, request: Any) -> Any:
    """Handle any of the three, as if it had come by a connection."""
    handler = {
        ApiKey.LEADER_AND_ISR: leader_and_isr,
        ApiKey.STOP_REPLICA: stop_replica,
        ApiKey.UPDATE_METADATA: update_metadata,
    }[ApiKey(request.API_KEY)]
    return await handler(services, request)


async def leader_and_isr(services: Services, request: Any) -> Any:
    response = response_class(ApiKey.LEADER_AND_ISR)
    error = await _check(services, request)
    if error is ErrorCode.NONE:
        try:
            # A log that is opened with the wrong settings is worse than one that is opened late.
            await services.control.load_topic_configs(topic.topic_name for topic in request.topic_states)
        except SessionExpiredError:
            # We are being registered again, and the controller will tell that life of ours everything again.
            return response(error_code=ErrorCode.STALE_BROKER_EPOCH, topics=[])
        error = services.control.check_control_request(request)
    if error is not ErrorCode.NONE:
        return response(error_code=error, topics=[])
    asked = assignments(request)
    if services.roles.opens_logs(asked):
        async with services.checkpoints.lock:
            await services.roles.open_logs(asked)
            # That took its time: another controller may have spoken meanwhile, and the last word is its own.
            error = services.control.check_control_request(request)
            if error is not ErrorCode.NONE:
                return response(error_code=error, topics=[])
            codes = services.roles.assign(asked)
    else:
        codes = services.roles.assign(asked)
    topic_class = response.LeaderAndIsrTopicError
    return response(
        error_code=ErrorCode.NONE,
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


async def stop_replica(services: Services, request: Any) -> Any:
    response = response_class(ApiKey.STOP_REPLICA)
    error = await _check(services, request)
    if error is not ErrorCode.NONE:
        return response(error_code=error, partition_errors=[])
    asked = stops(request)
    if any(stop.delete for stop in asked):
        # A checkpoint that is being written names the log still; the deletion must have the last word.
        async with services.checkpoints.lock:
            codes = services.roles.stop(asked)
    else:
        codes = services.roles.stop(asked)
    return response(error_code=ErrorCode.NONE, partition_errors=_stop_errors(response, codes))


def _stop_errors(response: Any, codes: Mapping[TopicPartition, ErrorCode]) -> list[Any]:
    return [
        response.StopReplicaPartitionError(topic_name=topic, partition_index=partition, error_code=code)
        for (topic, partition), code in codes.items()
    ]


async def update_metadata(services: Services, request: Any) -> Any:
    response = response_class(ApiKey.UPDATE_METADATA)
    error = await _check(services, request)
    if error is ErrorCode.NONE:
        services.metadata.update(request)
        services.roles.withdraw(elsewhere(request, services.replicas.broker_id))
    return response(error_code=error)


async def _check(services: Services, request: Any) -> ErrorCode:
    """The fence of Kafka's ReplicaManager, once we know in which life we are.

    Before that a request for this life cannot be told from one for the former: the controller may hear of our
    registration before we do.
    """
    control = services.control
    if not await control.knows_its_epoch():
        return ErrorCode.STALE_BROKER_EPOCH
    error = ErrorCode.INVALID_REQUEST if _is_impossible(request) else control.check_control_request(request)
    if error is not ErrorCode.NONE:
        logger.info(
            "%s of controller %d (epoch %d, for broker epoch %d) refused: %s",
            ApiKey(request.API_KEY).name, request.controller_id, request.controller_epoch, request.broker_epoch,
            error.name,
        )  # fmt: skip
    return error


def _is_impossible(request: Any) -> bool:
    """Whether it names what no controller knows: then it comes from none, and nothing of it is obeyed.

    A name becomes a directory, a broker's id one whom we follow.
    """
    ids = [broker.id for broker in getattr(request, "live_brokers", ())]
    for topic in request.topic_states:
        if not is_legal_name(topic.topic_name) or getattr(topic, "topic_id", topic) is None:
            return True
        for state in topic.partition_states:
            ids.append(state.partition_index)
            ids += getattr(state, "replicas", ())
    return bool(min(request.controller_id, request.controller_epoch, *ids) < 0)
