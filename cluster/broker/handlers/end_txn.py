"""EndTxn (26): a transaction is committed or aborted. The answer comes when that is decided, before its markers are."""

from __future__ import annotations

from cluster.broker.exchange import Exchange
from cluster.broker.handlers.add_partitions_to_txn import told
from cluster.broker.services import Services
from cluster.protocol.message_classes import EndTxnRequest, EndTxnResponse


async def handle(services: Services, request: EndTxnRequest, exchange: Exchange) -> EndTxnResponse:
    code = await services.transactions.end_txn(
        request.transactional_id, request.producer_id, request.producer_epoch, commit=request.committed
    )
    return EndTxnResponse(error_code=told(code, exchange.api_version))
