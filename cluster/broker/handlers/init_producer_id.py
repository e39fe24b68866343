"""InitProducerId (22): an id for an idempotent producer. Transactional ids have no coordinator, and are refused."""

from __future__ import annotations

from typing import Any

from cluster.broker.control.links.producer_ids import CoordinatorLoading, NoProducerIds
from cluster.broker.exchange import Exchange
from cluster.broker.handlers.find_coordinator import located
from cluster.broker.services import Services
from cluster.coordinator.location import CoordinatorType
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import response_class


async def handle(services: Services, request: Any, exchange: Exchange) -> Any:
    response = response_class(ApiKey.INIT_PRODUCER_ID)
    if request.transactional_id == "" or (request.producer_id >= 0) != (request.producer_epoch >= 0):
        return response(error_code=ErrorCode.INVALID_REQUEST, producer_id=-1, producer_epoch=-1)
    if request.transactional_id is not None:
        found = located(services, CoordinatorType.TRANSACTION, request.transactional_id, exchange)
        return response(error_code=found.error_code, producer_id=-1, producer_epoch=-1)
    try:
        producer_id = await services.control.next_producer_id()
    except (CoordinatorLoading, NoProducerIds) as error:
        return response(error_code=error.error_code, producer_id=-1, producer_epoch=-1)
    # A fresh id each time, also to a producer that shows its old one: nothing of the old one is to be believed.
    return response(error_code=ErrorCode.NONE, producer_id=producer_id, producer_epoch=0)
