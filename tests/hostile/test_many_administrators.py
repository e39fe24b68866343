"""Many administrators, each with a small request: what they wait for comes after an election (M2).

One large request is divided (``test_elections_first``); here each is done in one piece, and only their patience lets
the election pass.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.cluster.broker.control.cluster import SESSION_MS, Cluster, create_topics_request, isr_change, serve
from tests.cluster.broker.control.cluster import ask as ask_controller
from tests.support.virtual_time import run

REQUESTS = 100
#: Of one look at ZooKeeper, or one write to it.
LATENCY_S = 0.02
#: Before the session of the leader ends, so that the queue is full when it does.
EARLIER_S = 0.1


def creation(name: str) -> tuple[Any, int]:
    return create_topics_request([(f"new-{name}", 1, 1)], timeout_ms=60_000), 7


def deletion(name: str) -> tuple[Any, int]:
    return request_class(ApiKey.DELETE_TOPICS)(version=5, topic_names=[name], topics=[], timeout_ms=60_000), 5


def growth(name: str) -> tuple[Any, int]:
    request = request_class(ApiKey.CREATE_PARTITIONS)
    topic = request.CreatePartitionsTopic(name=name, count=2, assignments=None)
    return request(topics=[topic], timeout_ms=60_000, validate_only=False), 3


def move(name: str) -> tuple[Any, int]:
    request = request_class(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
    topic = request.ReassignableTopic
    parts = [topic.ReassignablePartition(partition_index=0, replicas=[1, 3])]
    return request(topics=[topic(name=name, partitions=parts)], timeout_ms=60_000), 0


def election(name: str) -> tuple[Any, int]:
    """Of the preferred leader, which was away."""
    request = request_class(ApiKey.ELECT_LEADERS)
    return request(election_type=0, topic_partitions=[request.TopicPartitions(topic=name, partitions=[0])]), 2


async def bring_into_isr(cluster: Cluster, names: list[str]) -> None:
    """Broker 3, which leads all of them, says that broker 4 has caught up."""
    cache, plane = cluster.controller.cache, cluster.brokers[3].plane
    epochs = {4: cluster.brokers[4].plane.broker_epoch}
    changes = []
    for name in names:
        topic, state = cache.topic(name), cluster.state(name)
        assert topic is not None and state is not None
        changes.append(isr_change(topic.topic_id, 0, state, (3, 4), epochs))
    assert {answer.error_code for answer in await ask_controller(plane, *changes)} == {ErrorCode.NONE}


@pytest.mark.parametrize("ask", [creation, deletion, growth, move, election])
def test_a_leader_is_replaced_while_many_administrators_wait(ask: Any) -> None:
    """Within the session's end and a second, whatever they ask for; most of them still wait then."""

    async def main() -> None:
        cluster = Cluster(LATENCY_S)
        await cluster.start(1, 2, 3, 4, auto_leader_rebalance_enable=False)
        await cluster.create_topic("t", assignments={0: [2, 3, 1]}, partitions=-1, factor=-1)
        names = [f"many-{number}" for number in range(REQUESTS)]
        for name in names if ask is not creation else []:
            await cluster.create_topic(name, assignments={0: [4, 3]}, partitions=-1, factor=-1)
        if ask is election:
            await cluster.brokers[4].crash()
            await cluster.until(lambda: all(cluster.leader(name) == 3 for name in names))
            await cluster.start(4, auto_leader_rebalance_enable=False)
            await bring_into_isr(cluster, names)
        loop = asyncio.get_running_loop()
        before = loop.time()
        await cluster.brokers[2].crash()
        await asyncio.sleep(SESSION_MS / 1000 - EARLIER_S)
        plane = cluster.controller.plane
        working = [loop.create_task(serve(plane, *ask(name))) for name in names]
        await cluster.until(lambda: cluster.leader() == 3, within_s=60)
        assert loop.time() - before < SESSION_MS / 1000 + 1
        assert sum(not task.done() for task in working) > REQUESTS / 2
        for task in working:
            task.cancel()
        await cluster.stop()

    run(main())
