"""Transactions over the wire, in memory: what is committed is read, what is aborted is not, whatever breaks."""

from __future__ import annotations

import asyncio

import pytest

from cluster.broker.internal_topics import OFFSETS_TOPIC
from cluster.coordinator.transaction.state import TransactionMetadata, TransactionState
from cluster.protocol.errors import ErrorCode
from tests.cluster.broker.scenes import TOPIC
from tests.cluster.broker.transactions.scenes import (
    GROUP,
    TxnProducer,
    coordinator_of,
    is_over,
    known,
    read_committed,
    with_transactions,
)
from tests.simulation.nodes import MemoryCluster

BOTH = [(TOPIC, 0), (TOPIC, 1)]


@pytest.mark.parametrize("brokers", [1, 3])
def test_what_is_committed_is_read_and_what_is_aborted_is_not(brokers: int) -> None:
    """Under read_committed nothing is read before the decision; the markers are in every partition."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        for number, commit in enumerate((True, False, True)):
            assert set((await producer.add(BOTH)).values()) == {ErrorCode.NONE}
            for partition in (0, 1):
                assert (await producer.write(b"%d" % number, partition)).error is ErrorCode.NONE
            before = [b"0"] if number else []
            assert await read_committed(cluster) == before
            assert await producer.end(commit=commit) is ErrorCode.NONE
            await cluster.until(lambda: is_over(cluster))
        for partition in (0, 1):
            assert await read_committed(cluster, partition) == [b"0", b"2"]
            assert await read_committed(cluster, partition, isolation=0) == [b"0", b"1", b"2"]

    with_transactions(check, brokers)


def test_a_second_producer_fences_the_first() -> None:
    """Its open transaction is aborted; at the coordinator it is fenced, and in partitions its epoch is of the past."""

    async def check(cluster: MemoryCluster, first: TxnProducer) -> None:
        await first.begin()
        await first.add(BOTH)
        await first.write(b"lost")
        second = TxnProducer(cluster)
        assert await second.init() is ErrorCode.CONCURRENT_TRANSACTIONS
        await second.begin()
        assert (second.producer_id, second.producer_epoch) == (first.producer_id, first.producer_epoch + 2)
        assert set((await first.add(BOTH)).values()) == {ErrorCode.PRODUCER_FENCED}
        assert set((await first.add(BOTH, version=1)).values()) == {ErrorCode.INVALID_PRODUCER_EPOCH}
        assert await first.end(commit=True) is ErrorCode.PRODUCER_FENCED
        assert (await first.write(b"late")).error is ErrorCode.INVALID_PRODUCER_EPOCH
        await second.add([(TOPIC, 0)])
        await second.write(b"kept")
        assert await second.end(commit=True) is ErrorCode.NONE
        await cluster.until(lambda: is_over(cluster))
        assert await read_committed(cluster) == [b"kept"]

    with_transactions(check, brokers=3)


@pytest.mark.parametrize("commit", [True, False])
def test_offsets_of_a_transaction(commit: bool) -> None:
    """They count when the transaction is committed, not before, and never if it is aborted."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        assert await producer.add_offsets() is ErrorCode.NONE
        assert await producer.commit_offsets({(TOPIC, 0): 7}) == {(TOPIC, 0): ErrorCode.NONE}
        assert committed(cluster) == {}
        assert await producer.end(commit=commit) is ErrorCode.NONE
        await cluster.until(lambda: is_over(cluster))
        assert committed(cluster) == ({(TOPIC, 0): 7} if commit else {})

    with_transactions(check, brokers=3)


def committed(cluster: MemoryCluster) -> dict[tuple[str, int], int]:
    """The group's offsets, as its coordinator knows them."""
    for node in cluster.nodes.values():
        assert node._coordinators is not None
        groups = node._coordinators.groups
        if cluster.leader(OFFSETS_TOPIC, groups.partition_of(GROUP)) == node.config.broker_id:
            group = groups.coordinator.group(GROUP)
            found = {} if group is None else group.offsets.committed
            return {partition: placed.committed.offset for partition, placed in found.items()}
    raise AssertionError("the group has no coordinator")


@pytest.mark.parametrize("commit", [True, False])
def test_a_coordinator_that_dies_is_succeeded(commit: bool) -> None:
    """The transaction goes on at the next one, which knows its partitions."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        await producer.add(BOTH)
        assert (await producer.write(b"a", 0)).error is ErrorCode.NONE
        former = coordinator_of(cluster)
        await cluster.crash(former)
        await cluster.until(lambda: coordinator_of(cluster) not in (-1, former) and is_known(cluster))
        assert await producer.end(commit=commit) is ErrorCode.NONE
        await cluster.until(lambda: is_over(cluster))
        assert await read_committed(cluster) == ([b"a"] if commit else [])

    with_transactions(check, brokers=3)


def is_known(cluster: MemoryCluster) -> bool:
    return isinstance(known(cluster), TransactionMetadata)


def test_a_decision_outlives_its_coordinator() -> None:
    """Killed right after the answer, before its markers: the successor sends them."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        await producer.add(BOTH)
        for partition in (0, 1):
            await producer.write(b"a", partition)
        former = coordinator_of(cluster)
        assert await producer.end(commit=True) is ErrorCode.NONE
        await cluster.crash(former)
        await cluster.until(lambda: is_over(cluster))
        found = known(cluster)
        assert isinstance(found, TransactionMetadata) and found.state is TransactionState.COMPLETE_COMMIT
        await cluster.until(lambda: min(cluster.leader(TOPIC, 0), cluster.leader(TOPIC, 1)) > 0)
        for partition in (0, 1):
            assert await read_committed(cluster, partition) == [b"a"]

    with_transactions(check, brokers=3)


def test_a_transaction_that_is_open_too_long_is_aborted() -> None:
    """A transaction is aborted after its timeout, and its producer is fenced."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin(timeout_ms=1000)
        await producer.add(BOTH)
        await producer.write(b"a")
        await asyncio.sleep(1.5)
        await cluster.until(lambda: is_over(cluster))
        assert await producer.end(commit=True) is ErrorCode.PRODUCER_FENCED
        assert await read_committed(cluster) == []

    with_transactions(check, transaction_abort_timed_out_transaction_cleanup_interval_ms="200")
