"""InitProducerId (22): an id and an epoch for a producer: a new id for an idempotent one, from any broker; those of its
transactional id for one with transactions, from its coordinator."""

from __future__ import annotations

from cluster.broker.control.links.producer_ids import CoordinatorLoading, NoProducerIds
from cluster.broker.exchange import Exchange
from cluster.broker.services import Services
from cluster.coordinator.transaction.decisions import TransactionAnswer
from cluster.coordinator.transaction.state import ProducerIdAndEpoch
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import InitProducerIdRequest, InitProducerIdResponse

#: Before it a producer that was fenced is told INVALID_PRODUCER_EPOCH.
FENCED_VERSION = 4


async def handle(services: Services, request: InitProducerIdRequest, exchange: Exchange) -> InitProducerIdResponse:
    try:
        answer = await _answer(services, request, exchange)
    except (CoordinatorLoading, NoProducerIds) as error:
        answer = TransactionAnswer(error.error_code)
    code = answer.error_code
    if code is ErrorCode.PRODUCER_FENCED and exchange.api_version < FENCED_VERSION:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    return InitProducerIdResponse(error_code=code, producer_id=answer.producer_id, producer_epoch=answer.producer_epoch)


async def _answer(services: Services, request: InitProducerIdRequest, exchange: Exchange) -> TransactionAnswer:
    has_id = request.producer_id >= 0
    if request.transactional_id == "" or has_id != (request.producer_epoch >= 0):
        return TransactionAnswer(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        # A fresh id each time, also to a producer that shows its old one: nothing of the old one is to be believed.
        return TransactionAnswer(ErrorCode.NONE, await services.control.next_producer_id(), 0)
    expected = ProducerIdAndEpoch(request.producer_id, request.producer_epoch) if has_id else None
    return await services.transactions.init_producer_id(
        request.transactional_id, request.transaction_timeout_ms, expected, exchange.connection.ip
    )
