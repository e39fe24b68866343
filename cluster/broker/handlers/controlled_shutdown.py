"""ControlledShutdown (7): a broker wants to go, and asks that others lead what it leads. Between brokers."""

from __future__ import annotations

from cluster.broker.exchange import Exchange
from cluster.broker.services import Services
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import ControlledShutdownRequest, ControlledShutdownResponse


async def handle(
    services: Services, request: ControlledShutdownRequest, _exchange: Exchange
) -> ControlledShutdownResponse:
    remaining = await services.control.apis.controlled_shutdown(request.broker_id, request.broker_epoch)
    if isinstance(remaining, ErrorCode):
        return ControlledShutdownResponse(error_code=remaining, remaining_partitions=[])
    return ControlledShutdownResponse(
        error_code=ErrorCode.NONE,
        remaining_partitions=[
            ControlledShutdownResponse.RemainingPartition(topic_name=topic, partition_index=partition)
            for topic, partition in remaining
        ],
    )
