"""Verification over the wire: records are written, and offsets committed, in open transactions alone (KIP-890)."""

from __future__ import annotations

import asyncio

import pytest

from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.cluster.broker.scenes import TOPIC
from tests.cluster.broker.transactions.scenes import (
    ID,
    TxnProducer,
    coordinator_of,
    is_over,
    read_committed,
    with_transactions,
)
from tests.simulation.client import Client, batch
from tests.simulation.nodes import MemoryCluster

ALL = [(TOPIC, number) for number in range(3)]


def test_a_partition_that_was_not_added() -> None:
    """INVALID_TXN_STATE, wherever the coordinator is; nothing is stored, and no reader is held up."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        await producer.add([(TOPIC, 0)])
        assert (await producer.write(b"a", 0)).error is ErrorCode.NONE
        for number in (1, 2):
            assert (await producer.write(b"a", number)).error is ErrorCode.INVALID_TXN_STATE
        await producer.add(ALL)
        for number in (1, 2):
            assert (await producer.write(b"b", number)).error is ErrorCode.NONE
        assert await producer.end(commit=True) is ErrorCode.NONE
        await cluster.until(lambda: is_over(cluster))
        assert [await read_committed(cluster, number) for number in range(3)] == [[b"a"], [b"b"], [b"b"]]
        # The transaction is over: what comes late would never be decided.
        assert (await producer.write(b"late", 0)).error is ErrorCode.INVALID_TXN_STATE
        assert await read_committed(cluster, 0) == [b"a"]

    with_transactions(check, brokers=3)


def test_it_can_be_switched_off() -> None:
    """As in Kafka before 3.6: then any transactional batch is taken."""

    async def check(_cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        assert (await producer.write(b"a", 0)).error is ErrorCode.NONE

    with_transactions(check, transaction_partition_verification_enable="false")


def test_whose_transaction_it_is() -> None:
    """A transactional batch needs an id and a producer; a made-up one has no transaction; a plain batch needs none."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        await producer.add(ALL)
        assert (await producer.write(b"a", transactional_id=None)).error is ErrorCode.INVALID_TXN_STATE
        assert (await producer.write(b"a", transactional_id="")).error is ErrorCode.INVALID_TXN_STATE
        assert (await producer.write(b"a", transactional_id="x")).error is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        client = Client(await cluster.connect(cluster.leader(TOPIC)))
        no_producer = batch(b"a", transactional=True)
        refused = await client.produce(TOPIC, no_producer, transactional_id=ID)
        assert refused.error is ErrorCode.INVALID_TXN_STATE
        assert (await client.produce(TOPIC, batch(b"plain"), transactional_id=ID)).error is ErrorCode.NONE
        another = batch(b"a", producer_id=producer.producer_id, base_sequence=0, producer_epoch=9, transactional=True)
        fenced = await client.produce(TOPIC, another, transactional_id=ID)
        assert fenced.error is ErrorCode.INVALID_PRODUCER_EPOCH
        assert await read_committed(cluster) == [b"plain"]

    with_transactions(check, brokers=3)


def test_two_producers_in_one_request() -> None:
    """INVALID_PRODUCER_ID_MAPPING: a request is of one transaction."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        await producer.add(ALL)
        request = request_class(ApiKey.PRODUCE)
        data_class = request.TopicProduceData.PartitionProduceData
        data = [
            data_class(
                index=number,
                records=batch(b"a", producer_id=producer.producer_id + number, base_sequence=0, transactional=True),
            )
            for number in (0, 1)
        ]
        topics = [request.TopicProduceData(name=TOPIC, partition_data=data)]
        answer = await producer.ask(
            ApiKey.PRODUCE, 9, cluster.leader(TOPIC), transactional_id=ID, acks=-1, timeout_ms=1000, topic_data=topics
        )
        codes = {each.error_code for each in answer.responses[0].partition_responses}
        assert codes == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}

    with_transactions(check)


def test_while_the_coordinator_is_away() -> None:
    """NOT_ENOUGH_REPLICAS, which every client retries; then the next coordinator says yes."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        await producer.add(ALL)
        former = coordinator_of(cluster)
        number = next(number for number in range(3) if cluster.leader(TOPIC, number) != former)
        await cluster.crash(former)
        seen = []
        while (code := (await producer.write(b"a", number)).error) is not ErrorCode.NONE:
            seen.append(code)
        assert set(seen) == {ErrorCode.NOT_ENOUGH_REPLICAS}

    with_transactions(check, brokers=3)


def test_offsets_outside_a_transaction() -> None:
    """They are refused before AddOffsetsToTxn, after the end, and to another producer."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        key = (TOPIC, 0)
        assert await producer.commit_offsets({key: 1}) == {key: ErrorCode.INVALID_TXN_STATE}
        await producer.add_offsets()
        made_up = await producer.commit_offsets({key: 1}, producer_id=producer.producer_id + 1)
        assert made_up == {key: ErrorCode.INVALID_PRODUCER_ID_MAPPING}
        assert await producer.commit_offsets({key: 1}, transactional_id="") == {key: ErrorCode.INVALID_REQUEST}
        assert await producer.commit_offsets({key: 1}, producer_id=-1) == {key: ErrorCode.INVALID_PRODUCER_ID_MAPPING}
        assert await producer.commit_offsets({key: 1}) == {key: ErrorCode.NONE}
        assert await producer.commit_offsets({("nowhere", 0): 1}) == {
            ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        }
        await producer.end(commit=True)
        await cluster.until(lambda: is_over(cluster))
        assert await producer.commit_offsets({key: 2}) == {key: ErrorCode.INVALID_TXN_STATE}

    with_transactions(check, brokers=3)


@pytest.mark.parametrize("verify_only", [True, False])
def test_only_brokers_ask_each_other(verify_only: bool) -> None:
    """Version 4 is closed to clients; on the brokers' listener nothing can be added by it."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        request = request_class(ApiKey.ADD_PARTITIONS_TO_TXN)
        asked = request.AddPartitionsToTxnTransaction(
            **producer.identity, verify_only=verify_only,
            topics=[request.AddPartitionsToTxnTransaction.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])],
        )  # fmt: skip
        with pytest.raises(ConnectionError):
            await producer.ask(ApiKey.ADD_PARTITIONS_TO_TXN, 4, transactions=[asked])
        client = Client(await cluster.connect(coordinator_of(cluster), listener="PEERS"))
        answer = await client.send(ApiKey.ADD_PARTITIONS_TO_TXN, 4, transactions=[asked])
        (found,) = answer.results_by_transaction[0].topic_results[0].results_by_partition
        expected = ErrorCode.TRANSACTION_ABORTABLE if verify_only else ErrorCode.INVALID_REQUEST
        assert found.partition_error_code == expected

    with_transactions(check)


def test_a_coordinator_that_does_not_answer() -> None:
    """Many producers wait for it together, each for its own time, and are told to try again."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        coordinator = coordinator_of(cluster)
        number = next(number for number in range(3) if cluster.leader(TOPIC, number) != coordinator)
        leader = cluster.leader(TOPIC, number)
        await producer.begin()
        await producer.add(ALL)
        for link in ((f"b{leader}", f"b{coordinator}"), (f"b{coordinator}", f"b{leader}")):
            cluster.network.cut(*link)
        began_s = asyncio.get_running_loop().time()
        written = await asyncio.gather(*(producer.write(b"a", number, acks=1) for _ in range(20)))
        assert {each.error for each in written} == {ErrorCode.NOT_ENOUGH_REPLICAS}
        assert asyncio.get_running_loop().time() - began_s < 2

    with_transactions(check, brokers=3, request_timeout_ms="1000")
