"""AddOffsetsToTxn (25): the partition with the offsets of a group becomes part of a transaction."""

from __future__ import annotations

from typing import Any

from cluster.broker.exchange import Exchange
from cluster.broker.handlers.add_partitions_to_txn import told
from cluster.broker.services import Services
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import response_class


async def handle(services: Services, request: Any, exchange: Exchange) -> Any:
    code = await services.transactions.add_offsets(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        request.group_id,
        services.groups.coordinator.settings.offsets_topic_num_partitions,
        exchange.connection.ip,
    )
    return response_class(ApiKey.ADD_OFFSETS_TO_TXN)(error_code=told(code, exchange.api_version))
