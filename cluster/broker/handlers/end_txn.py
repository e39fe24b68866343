"""EndTxn (26): a transaction is committed or aborted. The answer comes when that is decided, before its markers are."""

from __future__ import annotations

from typing import Any

from cluster.broker.exchange import Exchange
from cluster.broker.handlers.add_partitions_to_txn import told
from cluster.broker.services import Services
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import response_class


async def handle(services: Services, request: Any, exchange: Exchange) -> Any:
    code = await services.transactions.end_txn(
        request.transactional_id, request.producer_id, request.producer_epoch, commit=request.committed
    )
    return response_class(ApiKey.END_TXN)(error_code=told(code, exchange.api_version))
