"""A log whose topic is gone gives way to the topic that has its name now, no matter why it was left behind."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.broker.node import Node
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.simulation.client import Client, batch
from tests.simulation.nodes import MemoryCluster
from tests.support.virtual_time import run

TOPIC, KEY, MOVED = "t", ("t", 0), 3


def at_work(cluster: MemoryCluster) -> list[Node]:
    """The brokers that do not stand still."""
    return [node for broker_id, node in cluster.nodes.items() if broker_id not in cluster.paused]


def controller_of(cluster: MemoryCluster) -> Node | None:
    return next((node for node in at_work(cluster) if node.control.is_controller), None)


def alive(cluster: MemoryCluster) -> set[int]:
    """The brokers that the controller takes for alive."""
    found = controller_of(cluster)
    return set() if found is None else {each.broker_id for each in found.metadata.alive_brokers()}


async def controller(cluster: MemoryCluster) -> Client:
    """A connection to the controller, once there is one."""
    await cluster.until(lambda: controller_of(cluster) is not None)
    found = controller_of(cluster)
    assert found is not None
    return Client(await cluster.connect(found.config.broker_id))


async def reassign(cluster: MemoryCluster, replicas: list[int]) -> None:
    """Move the partition, and wait until it has these replicas and is on its way no more."""
    asked = request_class(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
    partition = asked.ReassignableTopic.ReassignablePartition(partition_index=0, replicas=replicas)
    topics = [asked.ReassignableTopic(name=TOPIC, partitions=[partition])]
    client = await controller(cluster)
    answer = await client.connection.send(asked(timeout_ms=5000, topics=topics), 0)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE
    await cluster.until(lambda: settled(cluster, replicas))


def settled(cluster: MemoryCluster, replicas: list[int]) -> bool:
    found = controller_of(cluster)
    state: Any = None if found is None else found.metadata.partition(*KEY)
    return state is not None and list(state.replicas) == replicas


async def delete(cluster: MemoryCluster) -> None:
    """Delete the topic, and wait until no broker at work knows it."""
    asked = request_class(ApiKey.DELETE_TOPICS)
    client = await controller(cluster)
    answer = await client.connection.send(asked(topic_names=[TOPIC], timeout_ms=5000), 4)
    assert answer.responses[0].error_code == ErrorCode.NONE
    await cluster.until(lambda: all(node.metadata.topic(TOPIC) is None for node in at_work(cluster)))


@pytest.mark.parametrize("is_paused", [False, True], ids=["it restarts", "it stood still"])
def test_a_topic_made_again_has_its_whole_isr(is_paused: bool) -> None:
    """Broker 3 is away while its replica is moved and the topic is made again: it takes part, with the new records."""

    async def main() -> None:
        async with MemoryCluster(4, {"min.insync.replicas": "1"}) as cluster:
            await cluster.create_topic(TOPIC, replicas=4)
            await cluster.until(lambda: cluster.isr(TOPIC) == {1, 2, 3, 4})
            former = Client(await cluster.connect(cluster.leader(TOPIC)))
            assert (await former.produce(TOPIC, batch(b"former"))).error is ErrorCode.NONE
            if is_paused:
                cluster.pause(MOVED)
            else:
                await cluster.crash(MOVED)
            await cluster.until(lambda: MOVED not in alive(cluster))
            await reassign(cluster, [1, 2, 4])
            await delete(cluster)
            if is_paused:
                cluster.resume(MOVED)
            else:
                await cluster.start(MOVED)
            await cluster.until(lambda: MOVED in alive(cluster))
            await cluster.create_topic(TOPIC, replicas=4)
            await cluster.until(lambda: cluster.isr(TOPIC) == {1, 2, 3, 4})
            now = Client(await cluster.connect(cluster.leader(TOPIC)))
            assert (await now.produce(TOPIC, batch(b"now"))).base_offset == 0
            kept = {each: cluster.log_bytes(each, TOPIC) for each in cluster.broker_ids}
            assert len(set(kept.values())) == 1 and b"now" in kept[MOVED] and b"former" not in kept[MOVED]

    run(main())
