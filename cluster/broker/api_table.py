"""Which APIs a listener serves, and who handles each.

Owns the table. Requests between brokers are served on the brokers' own listener alone: elsewhere anyone could depose
leaders or pass for a follower. (With a single listener for all, that one is it.)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from cluster.broker.answering import answering, answering_later
from cluster.broker.exchange import Api, Exchange
from cluster.broker.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_configs,
    api_versions,
    controller_only,
    delete_groups,
    delete_records,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_transactions,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    list_transactions,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
    txn_offset_commit,
    write_txn_markers,
)
from cluster.broker.handlers.from_controller import FROM_CONTROLLER
from cluster.broker.handlers.metadata import MetadataHandler
from cluster.broker.pauses import Shares
from cluster.broker.portions import Beside, Steps
from cluster.broker.services import Services
from cluster.protocol.apis import INTER_BROKER, PRODUCE_MIN_VERSION, SUPPORTED, WIDER_FOR_BROKERS, ApiKey
from cluster.protocol.message_classes import Message

_Request = TypeVar("_Request")

#: Each takes the request of its API; which class that is, only the key says.
_SYNC: dict[ApiKey, Callable[[Services, Any, Exchange], Steps[Message]]] = {
    ApiKey.LIST_OFFSETS: list_offsets.handle,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: offset_for_leader_epoch.handle,
    ApiKey.FIND_COORDINATOR: find_coordinator.handle,
    ApiKey.HEARTBEAT: heartbeat.handle,
    ApiKey.LEAVE_GROUP: leave_group.handle,
    ApiKey.OFFSET_FETCH: offset_fetch.handle,
    ApiKey.DESCRIBE_GROUPS: describe_groups.handle,
    ApiKey.LIST_GROUPS: list_groups.handle,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster.handle,
    ApiKey.DESCRIBE_LOG_DIRS: describe_log_dirs.handle,
    ApiKey.DESCRIBE_PRODUCERS: describe_producers.handle,
    ApiKey.DESCRIBE_TRANSACTIONS: describe_transactions.handle,
    ApiKey.LIST_TRANSACTIONS: list_transactions.handle,
}
_ASYNC: dict[ApiKey, Callable[[Services, Any, Exchange], Awaitable[Message]]] = {
    ApiKey.INIT_PRODUCER_ID: init_producer_id.handle,
    ApiKey.ADD_PARTITIONS_TO_TXN: add_partitions_to_txn.handle,
    ApiKey.ADD_OFFSETS_TO_TXN: add_offsets_to_txn.handle,
    ApiKey.END_TXN: end_txn.handle,
    ApiKey.TXN_OFFSET_COMMIT: txn_offset_commit.handle,
    ApiKey.JOIN_GROUP: join_group.handle,
    ApiKey.SYNC_GROUP: sync_group.handle,
    ApiKey.OFFSET_COMMIT: offset_commit.handle,
    ApiKey.OFFSET_DELETE: offset_delete.handle,
    ApiKey.DELETE_GROUPS: delete_groups.handle,
    ApiKey.DESCRIBE_CONFIGS: describe_configs.handle,
    ApiKey.ALTER_CONFIGS: alter_configs.handle_whole,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: alter_configs.handle_incremental,
    ApiKey.CREATE_TOPICS: controller_only.serve,
    ApiKey.DELETE_TOPICS: controller_only.serve,
    ApiKey.CREATE_PARTITIONS: controller_only.serve,
    ApiKey.ELECT_LEADERS: controller_only.serve,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: controller_only.serve,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: controller_only.serve,
}
#: Those that the controller carries out, one by one.
_OF_ADMINISTRATORS = {key for key, handler in _ASYNC.items() if handler is controller_only.serve}
_BETWEEN_BROKERS: dict[ApiKey, Callable[[Services, Any, Exchange], Awaitable[Message]]] = {
    ApiKey.ALTER_PARTITION: controller_only.serve,
    ApiKey.CONTROLLED_SHUTDOWN: controller_only.serve,
    ApiKey.ALLOCATE_PRODUCER_IDS: controller_only.serve,
    ApiKey.WRITE_TXN_MARKERS: write_txn_markers.handle,
}


def api_table(services: Services, metadata: MetadataHandler, *, for_brokers: bool) -> dict[int, Api]:
    """The table of one listener; ``for_brokers`` if it is the brokers' own."""
    # Each has a lane of its own: what clients ask does not stand before what the controller tells.
    beside = Beside(services.blocking)
    # And shares of their own: no crowd of clients delays a follower's fetch.
    shares = Shares(services.shares.now_ns) if for_brokers else services.shares
    rooms = dict.fromkeys(_OF_ADMINISTRATORS, beside.administrators)
    handlers: dict[ApiKey, Callable[[Exchange, memoryview], None]] = {
        ApiKey.PRODUCE: partial(produce.handle, services.replicas, services.verifier, beside),
        ApiKey.FETCH: partial(fetch.handle, services.replicas, beside, shares, from_brokers=for_brokers),
        ApiKey.DELETE_RECORDS: partial(delete_records.handle, services, beside),
        ApiKey.METADATA: answering(ApiKey.METADATA, metadata.handle, beside, shares),
        **{key: answering(key, partial(handler, services), beside, shares) for key, handler in _SYNC.items()},
        **{
            key: answering_later(key, partial(handler, services), beside, shares, rooms.get(key))
            for key, handler in _ASYNC.items()
        },
    }
    windows = {key: SUPPORTED[key] for key in (*handlers, ApiKey.API_VERSIONS)}
    if for_brokers:
        for key, handler in _BETWEEN_BROKERS.items():
            handlers[key] = answering_later(key, partial(handler, services), beside, shares, beside.brokers)
        for key, obey in FROM_CONTROLLER.items():
            handlers[key] = answering_later(
                key, partial(_without_exchange, partial(obey, services)), beside, shares, beside.brokers
            )
        windows |= {key: INTER_BROKER[key] for key in (*_BETWEEN_BROKERS, *FROM_CONTROLLER)} | WIDER_FOR_BROKERS
    handlers[ApiKey.API_VERSIONS] = api_versions.handler((key, *windows[key]) for key in sorted(windows))
    return {key: _api(key, windows[key], handle) for key, handle in handlers.items()}


def _api(key: ApiKey, window: tuple[int, int], handle: Callable[[Exchange, memoryview], None]) -> Api:
    least, greatest = window
    return Api(key, PRODUCE_MIN_VERSION if key is ApiKey.PRODUCE else least, greatest, handle)


async def _without_exchange(
    handler: Callable[[_Request], Awaitable[Message]], request: _Request, _exchange: Exchange
) -> Message:
    return await handler(request)
