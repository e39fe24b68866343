"""ListTransactions (66): the transactional ids that this broker coordinates (KIP-664); from version 1 on those whose
transaction is open for longer than some time."""

from __future__ import annotations

from collections.abc import Sequence

from cluster.broker.exchange import Exchange
from cluster.broker.portions import Steps, chunks
from cluster.broker.services import Services
from cluster.coordinator.transaction.describing import STATE_NAMES, STATES, TransactionFilter, listing
from cluster.protocol.message_classes import ListTransactionsRequest, ListTransactionsResponse

#: From this version on there is a time.
DURATION_VERSION = 1
#: Filters that are examined before others have their turn.
AT_ONCE = 1000


def handle(services: Services, request: ListTransactionsRequest, exchange: Exchange) -> Steps[ListTransactionsResponse]:
    least_ms = request.duration_filter if exchange.api_version >= DURATION_VERSION else -1
    states, unknown = yield from _states(request.state_filters)
    producer_ids: set[int] = set()
    for some in chunks(request.producer_id_filters, AT_ONCE):
        producer_ids.update(some)
        yield None
    wanted = TransactionFilter(states, producer_ids or None, least_ms)
    service = services.transactions
    error_code, found = listing(service.coordinator.owned, wanted, service.wall_ms())
    listed = []
    for metadata in found:
        if metadata is not None:
            listed.append(
                ListTransactionsResponse.TransactionState(
                    transactional_id=metadata.transactional_id,
                    producer_id=metadata.producer_id,
                    transaction_state=STATE_NAMES[metadata.state],
                )
            )
        yield None
    return ListTransactionsResponse(error_code=error_code, unknown_state_filters=unknown, transaction_states=listed)


def _states(names: Sequence[str]) -> Steps[tuple[set[str] | None, list[str]]]:
    """The states that are asked for, None if all are; and the names of no state, each once."""
    states: set[str] = set()
    unknown: dict[str, None] = {}
    for some in chunks(names, AT_ONCE):
        states.update(name for name in some if name in STATES)
        unknown.update((name, None) for name in some if name not in STATES)
        yield None
    return (states if names else None), list(unknown)
