"""AllocateProducerIds (67): a block of producer ids for a broker, which hands them to its clients. Between brokers."""

from __future__ import annotations

from cluster.broker.exchange import Exchange
from cluster.broker.services import Services
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import AllocateProducerIdsRequest, AllocateProducerIdsResponse


async def handle(
    services: Services, request: AllocateProducerIdsRequest, _exchange: Exchange
) -> AllocateProducerIdsResponse:
    block = await services.control.apis.allocate_producer_ids(request.broker_id, request.broker_epoch)
    if isinstance(block, ErrorCode):
        return AllocateProducerIdsResponse(error_code=block)
    return AllocateProducerIdsResponse(
        error_code=ErrorCode.NONE, producer_id_start=block.first_id, producer_id_len=block.size
    )
