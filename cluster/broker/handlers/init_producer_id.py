"""InitProducerId (22): an id for an idempotent producer. Transactional ids wait for their coordinator to exist."""

from __future__ import annotations

from typing import Any

from cluster.broker.control.changes import CoordinatorLoading, NoProducerIds
from cluster.broker.server import Exchange
from cluster.broker.services import Services
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import response_class


async def handle(services: Services, request: Any, exchange: Exchange) -> Any:
    response = response_class(ApiKey.INIT_PRODUCER_ID)
    if request.transactional_id == "" or (request.producer_id >= 0) != (request.producer_epoch >= 0):
        return response(error_code=ErrorCode.INVALID_REQUEST, producer_id=-1, producer_epoch=-1)
    if request.transactional_id is not None:
        return response(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, producer_id=-1, producer_epoch=-1)
    try:
        producer_id = await services.control.next_producer_id()
    except (CoordinatorLoading, NoProducerIds) as error:
        return response(error_code=error.error_code, producer_id=-1, producer_epoch=-1)
    # A fresh id each time, also to a producer that shows its old one: nothing of the old one is to be believed.
    return response(error_code=ErrorCode.NONE, producer_id=producer_id, producer_epoch=0)
