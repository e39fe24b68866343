"""Which APIs a listener serves, and who handles each.

Owns the table, of which each row names the class of a request beside its handler: mypy sees that they agree. Requests
between brokers are served on the brokers' own listener alone: elsewhere anyone could depose leaders or pass for a
follower. (With a single listener for all, that one is it.)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Generic, Protocol, TypeVar

from cluster.broker.answering import Handle, answering_awaited, answering_in_steps
from cluster.broker.exchange import Api, Exchange
from cluster.broker.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    allocate_producer_ids,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    api_versions,
    controlled_shutdown,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_transactions,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    list_partition_reassignments,
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
from cluster.broker.handlers.from_controller import FROM_CONTROLLER, obey
from cluster.broker.handlers.metadata import MetadataHandler
from cluster.broker.pauses import Shares
from cluster.broker.portions import Beside, RequestQuota, Steps
from cluster.broker.services import Services
from cluster.protocol.apis import INTER_BROKER, PRODUCE_MIN_VERSION, SUPPORTED, WIDER_FOR_BROKERS, ApiKey
from cluster.protocol.message_classes import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AllocateProducerIdsRequest,
    AlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    ControlledShutdownRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeLogDirsRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ElectLeadersRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    ListPartitionReassignmentsRequest,
    ListTransactionsRequest,
    Message,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)

_Request = TypeVar("_Request", bound="Message")


class _Row(Protocol):
    """One API: what serves it on a listener, with the lanes and shares of that listener."""

    @property
    def key(self) -> ApiKey: ...

    def serve(self, services: Services, beside: Beside, shares: Shares) -> Handle: ...


@dataclass(frozen=True)
class _InSteps(Generic[_Request]):
    """Answered of what is known here."""

    request: type[_Request]
    handler: Callable[[Services, _Request, Exchange], Steps[Message]]

    @property
    def key(self) -> ApiKey:
        return ApiKey(self.request.API_KEY)

    def serve(self, services: Services, beside: Beside, shares: Shares) -> Handle:
        return answering_in_steps(self.request, partial(self.handler, services), beside, shares)


@dataclass(frozen=True)
class _Awaited(Generic[_Request]):
    """Answered after others were asked. Large requests wait for each other in ``room``."""

    request: type[_Request]
    handler: Callable[[Services, _Request, Exchange], Awaitable[Message]]
    room: Callable[[Beside], RequestQuota] = attrgetter("large")

    @property
    def key(self) -> ApiKey:
        return ApiKey(self.request.API_KEY)

    def serve(self, services: Services, beside: Beside, shares: Shares) -> Handle:
        return answering_awaited(self.request, partial(self.handler, services), beside, shares, self.room(beside))


def _table(*rows: _Row) -> dict[ApiKey, _Row]:
    return {row.key: row for row in rows}


#: The rooms where large requests of these wait for each other.
_ADMINISTRATORS: Callable[[Beside], RequestQuota] = attrgetter("administrators")
_BROKERS: Callable[[Beside], RequestQuota] = attrgetter("brokers")

_FOR_ALL = _table(
    _InSteps(ListOffsetsRequest, list_offsets.handle),
    _InSteps(OffsetForLeaderEpochRequest, offset_for_leader_epoch.handle),
    _InSteps(FindCoordinatorRequest, find_coordinator.handle),
    _InSteps(HeartbeatRequest, heartbeat.handle),
    _InSteps(LeaveGroupRequest, leave_group.handle),
    _InSteps(OffsetFetchRequest, offset_fetch.handle),
    _InSteps(DescribeGroupsRequest, describe_groups.handle),
    _InSteps(ListGroupsRequest, list_groups.handle),
    _InSteps(DescribeClusterRequest, describe_cluster.handle),
    _InSteps(DescribeLogDirsRequest, describe_log_dirs.handle),
    _InSteps(DescribeProducersRequest, describe_producers.handle),
    _InSteps(DescribeTransactionsRequest, describe_transactions.handle),
    _InSteps(ListTransactionsRequest, list_transactions.handle),
    _Awaited(InitProducerIdRequest, init_producer_id.handle),
    _Awaited(AddPartitionsToTxnRequest, add_partitions_to_txn.handle),
    _Awaited(AddOffsetsToTxnRequest, add_offsets_to_txn.handle),
    _Awaited(EndTxnRequest, end_txn.handle),
    _Awaited(TxnOffsetCommitRequest, txn_offset_commit.handle),
    _Awaited(JoinGroupRequest, join_group.handle),
    _Awaited(SyncGroupRequest, sync_group.handle),
    _Awaited(OffsetCommitRequest, offset_commit.handle),
    _Awaited(OffsetDeleteRequest, offset_delete.handle),
    _Awaited(DeleteGroupsRequest, delete_groups.handle),
    _Awaited(DescribeConfigsRequest, describe_configs.handle),
    _Awaited(AlterConfigsRequest, alter_configs.handle_whole),
    _Awaited(IncrementalAlterConfigsRequest, alter_configs.handle_incremental),
    # What the controller carries out, one by one.
    _Awaited(CreateTopicsRequest, create_topics.handle, _ADMINISTRATORS),
    _Awaited(DeleteTopicsRequest, delete_topics.handle, _ADMINISTRATORS),
    _Awaited(CreatePartitionsRequest, create_partitions.handle, _ADMINISTRATORS),
    _Awaited(ElectLeadersRequest, elect_leaders.handle, _ADMINISTRATORS),
    _Awaited(AlterPartitionReassignmentsRequest, alter_partition_reassignments.handle, _ADMINISTRATORS),
    _Awaited(ListPartitionReassignmentsRequest, list_partition_reassignments.handle, _ADMINISTRATORS),
)
_FOR_BROKERS = _table(
    _Awaited(WriteTxnMarkersRequest, write_txn_markers.handle, _BROKERS),
    # What brokers ask the controller.
    _Awaited(AlterPartitionRequest, alter_partition.handle, _BROKERS),
    _Awaited(ControlledShutdownRequest, controlled_shutdown.handle, _BROKERS),
    _Awaited(AllocateProducerIdsRequest, allocate_producer_ids.handle, _BROKERS),
    *(_Awaited(request, obey, _BROKERS) for request in FROM_CONTROLLER),
)


def api_table(services: Services, metadata: MetadataHandler, *, for_brokers: bool) -> dict[int, Api]:
    """The table of one listener; ``for_brokers`` if it is the brokers' own."""
    # Each has a lane of its own: what clients ask does not stand before what the controller tells.
    beside = Beside(services.blocking)
    # And shares of their own: no crowd of clients delays a follower's fetch.
    shares = Shares(services.shares.now_ns) if for_brokers else services.shares
    rows = {**_FOR_ALL, **_FOR_BROKERS} if for_brokers else _FOR_ALL
    handlers: dict[ApiKey, Handle] = {
        ApiKey.PRODUCE: partial(produce.handle, services.replicas, services.verifier, beside),
        ApiKey.FETCH: partial(fetch.handle, services.replicas, beside, shares, from_brokers=for_brokers),
        ApiKey.DELETE_RECORDS: partial(delete_records.handle, services, beside),
        ApiKey.METADATA: answering_in_steps(MetadataRequest, metadata.handle, beside, shares),
        **{key: row.serve(services, beside, shares) for key, row in rows.items()},
    }
    windows = {key: SUPPORTED[key] for key in (*(handlers.keys() - _FOR_BROKERS.keys()), ApiKey.API_VERSIONS)}
    if for_brokers:
        windows |= {key: INTER_BROKER[key] for key in _FOR_BROKERS} | WIDER_FOR_BROKERS
    handlers[ApiKey.API_VERSIONS] = api_versions.handler((key, *windows[key]) for key in sorted(windows))
    return {key: _api(key, windows[key], handle) for key, handle in handlers.items()}


def _api(key: ApiKey, window: tuple[int, int], handle: Handle) -> Api:
    least, greatest = window
    return Api(key, PRODUCE_MIN_VERSION if key is ApiKey.PRODUCE else least, greatest, handle)
