"""Requests that wait for a broker that is away: as long as their client is there, and no longer than it is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from cluster.broker.control.links.channels import LOOK_S
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.cluster.broker.control.cluster import SESSION_MS, Cluster
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
    request = request_class(ApiKey.DELETE_TOPICS)(topic_names=["t"], topics=[], timeout_ms=INT32_MAX)
    return await cluster.controller.plane.serve(request, 5, is_gone)


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
