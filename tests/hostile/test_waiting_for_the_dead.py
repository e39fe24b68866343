"""Requests that wait for a broker that is away: as long as their client is there, and no longer than it is kept."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest

from cluster.broker.control.links.channels import LOOK_S
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.cluster.broker.control.cluster import SESSION_MS, Cluster, serve
from tests.support.virtual_time import run

#: ``connections.max.idle.ms``
IDLE_S = 60
INT32_MAX = 2**31 - 1
CLIENTS = 100


async def with_a_dead_broker() -> Cluster:
    """A topic on broker 2, which is gone."""
    cluster = Cluster()
    await cluster.start(1, 2, connections_max_idle_ms=IDLE_S * 1000)
    await cluster.create_topic("t", assignments={0: [2]}, partitions=-1, factor=-1)
    await cluster.brokers[2].crash()
    await asyncio.sleep(2 * SESSION_MS / 1000)
    return cluster


async def delete(cluster: Cluster, is_gone: Callable[[], bool]) -> Any:
    return await serve(cluster.controller.plane, deletion(), 5, is_gone)


def deletion() -> Any:
    return request_class(ApiKey.DELETE_TOPICS)(topic_names=["t"], topics=[], timeout_ms=INT32_MAX)


@pytest.mark.parametrize(("leaves_after_s", "most_s"), [(10, 10 + LOOK_S), (INT32_MAX, IDLE_S)])
def test_a_deletion_waits_for_its_client_alone(leaves_after_s: float, most_s: float) -> None:
    """It asked for 24.8 days. What it leaves behind is not more for a hundred such requests than for one."""

    async def main() -> None:
        cluster = await with_a_dead_broker()
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        tasks_before = len(asyncio.all_tasks())
        answers = await asyncio.gather(
            *(delete(cluster, lambda: loop.time() - begun_s > leaves_after_s) for _ in range(CLIENTS))
        )
        assert min(leaves_after_s, IDLE_S) <= loop.time() - begun_s <= most_s + 0.1
        assert {answer.responses[0].error_code for answer in answers} == {ErrorCode.REQUEST_TIMED_OUT}
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) <= tasks_before
        await cluster.stop()

    run(main())


def creation() -> Any:
    request = request_class(ApiKey.CREATE_TOPICS)
    assignments = [request.CreatableTopic.CreatableReplicaAssignment(partition_index=0, broker_ids=[1])]
    topic = request.CreatableTopic(
        name="another", num_partitions=-1, replication_factor=-1, assignments=assignments, configs=[]
    )
    return request(topics=[topic], timeout_ms=INT32_MAX, validate_only=False)


def growth() -> Any:
    request = request_class(ApiKey.CREATE_PARTITIONS)
    topic = request.CreatePartitionsTopic(name="t", count=2, assignments=None)
    return request(topics=[topic], timeout_ms=INT32_MAX, validate_only=False)


def election() -> Any:
    request = request_class(ApiKey.ELECT_LEADERS)
    topic = request.TopicPartitions(topic="t", partitions=[0])
    return request(election_type=0, topic_partitions=[topic], timeout_ms=INT32_MAX)


@pytest.mark.parametrize(("ask", "version"), [(deletion, 5), (creation, 7), (growth, 3), (election, 2)])
def test_what_waits_is_not_the_request(ask: Callable[[], Any], version: int) -> None:
    """It may have taken ten times its bytes: once it is carried out it is gone, and the next large one is read."""

    async def main() -> None:
        cluster = await with_a_dead_broker()
        told = list[int]()

        def let_go() -> None:
            gc.collect()
            told.append(sum(type(each) is kind for each in gc.get_objects()))

        kind = type(ask())
        answer = await serve(cluster.controller.plane, ask(), version, let_go=let_go)
        assert told == [0] and answer is not None
        await cluster.stop()

    run(main())
