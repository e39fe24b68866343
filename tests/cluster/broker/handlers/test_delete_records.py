"""DeleteRecords and DescribeProducers: what they do, what they refuse, and when a deletion is answered."""

from __future__ import annotations

import asyncio
import json

import pytest

from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.cluster.broker.scenes import TOPIC, client_of_leader, cut_followers, with_topic
from tests.simulation.client import Client, batch
from tests.simulation.nodes import MemoryCluster

#: (error, low watermark)
Answer = tuple[ErrorCode, int]


async def delete(
    client: Client, offset: int, topic: str = TOPIC, partition: int = 0, timeout_ms: int = 5000, version: int = 2
) -> Answer:
    return await client.delete_records(topic, offset, partition=partition, timeout_ms=timeout_ms, version=version)


async def fill(client: Client, count: int = 5) -> None:
    for number in range(count):
        await client.produce(TOPIC, batch(b"%d" % number))


def starts(cluster: MemoryCluster) -> set[int]:
    return {node.replicas.partitions[TOPIC, 0].log.log_start_offset for node in cluster.nodes.values()}


def journal(cluster: MemoryCluster, broker_id: int) -> list[dict[str, object]]:
    lines = cluster.storages[broker_id].read("/node/control.jsonl").decode().splitlines()
    return [line for line in map(json.loads, lines) if line["event"] == "delete-records"]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_records_are_gone_on_every_replica(version: int) -> None:
    """The answer comes when all live replicas' logs begin there; what was deleted is journalled, and not readable."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await fill(client)
        assert await delete(client, 3, version=version) == (ErrorCode.NONE, 3)
        assert starts(cluster) == {3}
        assert (await client.fetch(TOPIC, 2)).error is ErrorCode.OFFSET_OUT_OF_RANGE
        assert (await client.fetch(TOPIC, 3)).values == [b"3", b"4"]
        assert await client.list_offset(TOPIC, -2) == (ErrorCode.NONE, 3)
        (entry,) = journal(cluster, cluster.leader(TOPIC))
        assert (entry["topic"], entry["partition"], entry["from_offset"], entry["to_offset"]) == (TOPIC, 0, 0, 3)

    with_topic(check, brokers=3)


def test_minus_one_is_the_high_watermark() -> None:
    """All that is committed; what is already gone is no error, and is not journalled again."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await fill(client)
        assert await delete(client, -1) == (ErrorCode.NONE, 5)
        assert await delete(client, 2) == (ErrorCode.NONE, 5)
        assert len(journal(cluster, 1)) == 1
        assert (await client.produce(TOPIC, batch(b"next"))).base_offset == 5

    with_topic(check)


def test_what_is_refused() -> None:
    """Beyond the watermark, no such partition, an internal topic, and below zero: nothing is deleted."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await fill(client)
        assert await delete(client, 6) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
        assert await delete(client, -2) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
        assert await delete(client, 1, partition=7) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
        assert await delete(client, 1, topic="__consumer_offsets") == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
        await cluster.create_topic("keyed", **{"cleanup.policy": "compact"})
        assert await delete(client, 0, topic="keyed") == (ErrorCode.POLICY_VIOLATION, -1)
        assert starts(cluster) == {0}

    with_topic(check)


def test_only_the_leader_deletes() -> None:
    """NOT_LEADER_OR_FOLLOWER from a follower."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await fill(client)
        follower = next(broker for broker in cluster.broker_ids if broker != cluster.leader(TOPIC))
        other = Client(await cluster.connect(follower))
        assert await delete(other, 1) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)

    with_topic(check, brokers=3)


def test_a_follower_that_cannot_follow_is_waited_for() -> None:
    """REQUEST_TIMED_OUT at the request's own time, and the deletion stands; it is done when the follower is back."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await fill(client)
        await asyncio.sleep(1)
        links = cut_followers(cluster)
        began = asyncio.get_running_loop().time()
        assert await delete(client, 2, timeout_ms=700) == (ErrorCode.REQUEST_TIMED_OUT, -1)
        assert 0.7 <= asyncio.get_running_loop().time() - began < 0.8
        waiting = asyncio.ensure_future(delete(await client_of_leader(cluster), 2, timeout_ms=60_000))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        for link in links:
            cluster.network.heal(*link)
        assert await waiting == (ErrorCode.NONE, 2)
        assert starts(cluster) == {2}

    with_topic(check, brokers=3)


def test_a_dead_follower_is_not_waited_for() -> None:
    """Live replicas count: the wait ends when the cluster learns that one has died."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await fill(client)
        leader = cluster.leader(TOPIC)
        dying = next(
            broker for broker, node in cluster.nodes.items() if broker != leader and not node.control.is_controller
        )
        await cluster.crash(dying)
        assert await delete(client, 2, timeout_ms=60_000) == (ErrorCode.NONE, 2)

    with_topic(check, brokers=3)


def test_a_deletion_survives_a_clean_restart() -> None:
    """The log start is checkpointed, although its segment holds more."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await fill(client)
        await delete(client, 3)
        await cluster.stop(1)
        await cluster.start(1)
        await cluster.until(lambda: cluster.leader(TOPIC) == 1)
        assert await (await client_of_leader(cluster)).list_offset(TOPIC, -2) == (ErrorCode.NONE, 3)

    with_topic(check)


def test_producers_are_described_on_every_replica() -> None:
    """The newest epoch, sequence and time of each; leaders and followers know the same. Others say what is wrong."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await client.produce(TOPIC, batch(b"a", b"b", producer_id=7, base_sequence=0, timestamp=1000))
        await client.produce(TOPIC, batch(b"c", producer_id=9, base_sequence=0, producer_epoch=2, timestamp=2000))
        await client.produce(TOPIC, batch(b"none"))
        request = request_class(ApiKey.DESCRIBE_PRODUCERS)
        for broker_id in cluster.broker_ids:
            asked = Client(await cluster.connect(broker_id))
            topics = [request.TopicRequest(name=TOPIC, partition_indexes=[0, 5])]
            response = await asked.send(ApiKey.DESCRIBE_PRODUCERS, 0, topics=topics)
            known, unknown = response.topics[0].partitions
            assert [
                (each.producer_id, each.producer_epoch, each.last_sequence, each.last_timestamp)
                for each in known.active_producers
            ] == [(7, 0, 1, 1000), (9, 2, 0, 2000)]
            assert {(each.coordinator_epoch, each.current_txn_start_offset) for each in known.active_producers} == {
                (-1, -1)
            }
            assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert unknown.error_message

    with_topic(check, brokers=3)
