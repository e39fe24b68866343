"""AddOffsetsToTxn (25): the partition with the offsets of a group becomes part of a transaction."""

from __future__ import annotations

from cluster.broker.exchange import Exchange
from cluster.broker.handlers.add_partitions_to_txn import told
from cluster.broker.services import Services
from cluster.protocol.message_classes import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


async def handle(services: Services, request: AddOffsetsToTxnRequest, exchange: Exchange) -> AddOffsetsToTxnResponse:
    code = await services.transactions.add_offsets(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        request.group_id,
        services.groups.coordinator.settings.offsets_topic_num_partitions,
        exchange.connection.ip,
    )
    return AddOffsetsToTxnResponse(error_code=told(code, exchange.api_version))
