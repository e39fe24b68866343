"""AsyncAdmin about transactions, asked of whole brokers in one process (KIP-664)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from cluster.client import AdminError, AsyncAdmin, UnsupportedVersion
from cluster.client.transaction_descriptions import DescribedTransaction, ListedTransaction
from cluster.protocol.errors import ErrorCode
from tests.cluster.broker.scenes import TOPIC
from tests.cluster.broker.transactions.scenes import (
    ID,
    TxnProducer,
    coordinator_of,
    is_over,
    read_committed,
    with_transactions,
)
from tests.simulation.nodes import HOST, MemoryCluster
from tests.support.virtual_time import LoopClock

KEY = (TOPIC, 0)

WithAdmin = Callable[[MemoryCluster, TxnProducer, AsyncAdmin], Awaitable[None]]


def admin_at(cluster: MemoryCluster, listener: str = "CLIENTS") -> AsyncAdmin:
    bootstrap = [f"{HOST}:{node.ports[listener]}" for node in cluster.nodes.values()]
    return AsyncAdmin(bootstrap, cluster.network.transport("admin"), LoopClock(), 5_000)


def with_admin(check: WithAdmin, brokers: int = 1, **properties: str) -> None:
    async def body(cluster: MemoryCluster, producer: TxnProducer) -> None:
        admin = admin_at(cluster)
        try:
            await check(cluster, producer, admin)
        finally:
            await admin.close()

    with_transactions(body, brokers, **properties)


async def refused(call: Awaitable[object]) -> ErrorCode:
    """Why the cluster says no."""
    with pytest.raises(AdminError) as raised:
        await call
    return raised.value.error_code


def test_listing_and_describing() -> None:
    """Every coordinator's ids with their states; filters by state, producer and duration; an id that no one has."""

    async def check(cluster: MemoryCluster, producer: TxnProducer, admin: AsyncAdmin) -> None:
        await producer.begin()
        other = TxnProducer(cluster, "other")
        await other.begin()
        await producer.add([KEY, (TOPIC, 2)])
        mine = ListedTransaction(ID, producer.producer_id, "Ongoing", coordinator_of(cluster))
        others = ListedTransaction("other", other.producer_id, "Empty", coordinator_of(cluster, "other"))
        assert await admin.list_transactions() == [others, mine]
        assert await admin.list_transactions(["Ongoing"]) == [mine]
        assert await admin.list_transactions(["Empty", "Ongoing"], [other.producer_id]) == [others]
        assert await admin.list_transactions(["no such state"]) == []
        assert await admin.list_transactions(["Ongoing"], longer_than_ms=60_000) == []
        assert await admin.list_transactions(["Ongoing"], longer_than_ms=0) == [mine]
        described = (await admin.describe_transactions([ID, "other"]))[ID]
        assert described == DescribedTransaction(
            ID,
            mine.coordinator_id,
            producer.producer_id,
            0,
            "Ongoing",
            60_000,
            described.start_timestamp_ms,
            (KEY, (TOPIC, 2)),
        )
        assert described.start_timestamp_ms > 0
        assert await refused(admin.describe_transactions(["nobody"])) is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND

    with_admin(check, brokers=3)


def test_fencing_aborts_what_was_open() -> None:
    """Nothing of it is read; the producer that had the id can do nothing more, and the next one has the next epoch."""

    async def check(cluster: MemoryCluster, producer: TxnProducer, admin: AsyncAdmin) -> None:
        await producer.begin()
        await producer.add([KEY])
        assert (await producer.write(b"a")).error is ErrorCode.NONE
        fenced = (await admin.fence_producers([ID]))[ID]
        assert (fenced.producer_id, fenced.producer_epoch) == (producer.producer_id, 2)
        await cluster.until(lambda: is_over(cluster))
        assert await read_committed(cluster) == []
        assert await producer.end(commit=True) is ErrorCode.PRODUCER_FENCED
        await producer.begin()
        assert producer.producer_epoch == 3

    with_admin(check, brokers=3)


def test_a_hanging_transaction_is_aborted() -> None:
    """One that no coordinator knows, where brokers do not ask: readers continue, and what came after it is read."""

    async def check(cluster: MemoryCluster, producer: TxnProducer, admin: AsyncAdmin) -> None:
        await producer.begin()
        # Not the least epoch.
        await producer.begin()
        assert (await producer.write(b"hangs")).error is ErrorCode.NONE
        # From now on the coordinator has a transaction of this producer, without this partition.
        await producer.add([(TOPIC, 1)])
        assert (await producer.write(b"decided", 1)).error is ErrorCode.NONE
        assert await producer.end(commit=True) is ErrorCode.NONE
        await cluster.until(lambda: is_over(cluster))
        [state] = (await admin.describe_producers([KEY]))[KEY]
        assert (state.producer_id, state.coordinator_epoch, state.current_txn_start_offset) == (
            producer.producer_id,
            -1,
            0,
        )
        for broker_id in cluster.nodes:
            assert (await admin.describe_producers([KEY], broker_id))[KEY] == [state]
        identity = (state.producer_id, state.producer_epoch, state.coordinator_epoch)
        with pytest.raises(UnsupportedVersion, match="does not serve WRITE_TXN_MARKERS"):
            await admin.abort_transaction(KEY, *identity)
        peer = admin_at(cluster, "PEERS")
        try:
            older = (state.producer_id, state.producer_epoch - 1, state.coordinator_epoch)
            assert await refused(peer.abort_transaction(KEY, *older)) is ErrorCode.INVALID_PRODUCER_EPOCH
            await peer.abort_transaction(KEY, *identity)
        finally:
            await peer.close()
        [ended] = (await admin.describe_producers([KEY]))[KEY]
        assert (ended.coordinator_epoch, ended.current_txn_start_offset) == (0, -1)
        assert (await read_committed(cluster), await read_committed(cluster, 1)) == ([], [b"decided"])
        assert (await producer.write(b"next")).error is ErrorCode.NONE

    with_admin(check, brokers=3, transaction_partition_verification_enable="false")


def test_a_broker_without_a_replica_is_asked_in_vain() -> None:
    """Its answer is final, unlike that of one that was the leader a moment ago."""

    async def check(_cluster: MemoryCluster, _producer: TxnProducer, admin: AsyncAdmin) -> None:
        assert await refused(admin.describe_producers([(TOPIC, 9)], 1)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        with pytest.raises(TimeoutError, match="broker 9 is not alive"):
            await admin.describe_producers([KEY], 9)

    with_admin(check)
