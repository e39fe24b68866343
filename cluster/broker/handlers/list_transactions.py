"""ListTransactions (66): the transactional ids that this broker coordinates (KIP-664); from version 1 on those whose
transaction is open for longer than some time."""

from __future__ import annotations

from typing import Any

from cluster.broker.exchange import Exchange
from cluster.broker.portions import Steps
from cluster.broker.services import Services
from cluster.coordinator.transaction.describing import STATE_NAMES, TransactionFilter, listing
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import response_class

#: From this version on there is a time.
DURATION_VERSION = 1


def handle(services: Services, request: Any, exchange: Exchange) -> Steps[Any]:
    response = response_class(ApiKey.LIST_TRANSACTIONS)
    least_ms = request.duration_filter if exchange.api_version >= DURATION_VERSION else -1
    wanted = TransactionFilter(frozenset(request.state_filters), frozenset(request.producer_id_filters), least_ms)
    service = services.transactions
    error_code, found = listing(service.coordinator.owned, wanted, service.wall_ms())
    states = []
    for metadata in found:
        if metadata is not None:
            states.append(
                response.TransactionState(
                    transactional_id=metadata.transactional_id,
                    producer_id=metadata.producer_id,
                    transaction_state=STATE_NAMES[metadata.state],
                )
            )
        yield None
    unknown = sorted(wanted.unknown_states)
    return response(error_code=error_code, unknown_state_filters=unknown, transaction_states=states)
