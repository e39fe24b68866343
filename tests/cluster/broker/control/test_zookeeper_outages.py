"""A ZooKeeper of its own that stops, dies and comes back: the cluster stands still meanwhile and goes on after it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from cluster.broker.control.links.producer_ids import CoordinatorLoading
from cluster.process.java import find_java
from cluster.process.supervisor import Supervisor
from cluster.process.zookeeper import ZooKeeperHandle, start_zookeeper
from cluster.protocol.errors import ErrorCode
from tests.cluster.broker.control.cluster import create_topics_request, serve
from tests.cluster.broker.control.test_on_zookeeper import SESSION_MS, RealCluster
from tests.support.require import require

pytestmark = [pytest.mark.integration, pytest.mark.full]

PATIENCE_S = 60.0


class Server:
    """ZooKeeper with its data in one directory, through deaths."""

    def __init__(self, supervisor: Supervisor, directory: Path) -> None:
        self._supervisor = supervisor
        self._directory = str(directory / "server")
        self.handle: ZooKeeperHandle = self._start()

    def _start(self) -> ZooKeeperHandle:
        return start_zookeeper(self._supervisor, self._directory, find_java(), tick_ms=200)

    async def restart(self, cluster: RealCluster) -> None:
        """kill -9, then a new process with the same data, on another port behind the same links."""
        self.handle.child.kill()
        self.handle = await asyncio.to_thread(self._start)
        for link in cluster.links.values():
            link._target = (self.handle.host, self.handle.port)

    async def pause(self) -> None:
        """Three sessions long."""
        self.handle.child.suspend()
        await asyncio.sleep(3 * SESSION_MS / 1000)
        self.handle.child.resume()


async def ids(cluster: RealCluster, count: int) -> list[int]:
    taken: list[int] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(taken) < count:
            for broker in cluster.brokers.values():
                try:
                    taken.append(await broker.plane.next_producer_id())
                except CoordinatorLoading:
                    await asyncio.sleep(0.01)
    return taken


async def create(cluster: RealCluster, topic: str) -> None:
    """As a client does: asked again of whoever is controller then, and while its brokers are not all back.

    Right behind an outage who was controller may not have noticed yet, and what others know may be old.
    """
    tries = 0
    async with asyncio.timeout(PATIENCE_S):
        while True:
            for broker in [each for each in cluster.brokers.values() if each.plane.is_controller]:
                response = await serve(broker.plane, create_topics_request([(topic, 2, 3)]), 7)
                [result] = response.topics
                code = ErrorCode.of(result.error_code)
                if code is ErrorCode.NONE or (tries and code is ErrorCode.TOPIC_ALREADY_EXISTS):
                    return
                assert code.retriable or code is ErrorCode.INVALID_REPLICATION_FACTOR, result.error_message
                tries += 1
            await asyncio.sleep(0.01)


async def check_all_is_well(cluster: RealCluster, topic: str) -> None:
    """What a controller does is done; there is one that all know, and all brokers are alive for all."""
    brokers = list(cluster.brokers.values())
    await create(cluster, topic)
    await cluster.until(
        lambda: (
            [b.plane.is_controller for b in brokers].count(True) == 1
            and {b.plane.controller_id for b in brokers} == {cluster.controller.broker_id}
            and all(len(b.cache.alive_brokers()) == 3 for b in brokers)
            and all((topic, 1) in b.roles for b in brokers)
        ),
        PATIENCE_S,
    )


def survives(tmp_path: Path, outage: Callable[[Server, RealCluster], Awaitable[None]]) -> None:
    require("java")

    async def body(server: Server) -> None:
        cluster = RealCluster((server.handle.host, server.handle.port))
        await cluster.begin()
        for broker_id in (1, 2, 3):
            await cluster.link(broker_id)
        try:
            await cluster.start(1, 2, 3)
            await check_all_is_well(cluster, "before")
            taken = await ids(cluster, 300)
            for attempt in ("once", "twice"):
                await outage(server, cluster)
                await check_all_is_well(cluster, f"after-{attempt}")
            taken += await ids(cluster, 3000)
            assert len(set(taken)) == len(taken)
            for broker in cluster.brokers.values():
                assert broker.cache.topic("before") is not None
        finally:
            await cluster.end()

    with Supervisor(str(tmp_path)) as supervisor:
        asyncio.run(body(Server(supervisor, tmp_path)))


def test_a_restart_of_zookeeper_is_survived(tmp_path: Path) -> None:
    """Its data is kept: topics stay, sessions go on or are made again, no id is handed out twice."""
    survives(tmp_path, lambda server, cluster: server.restart(cluster))


def test_a_pause_longer_than_the_session_is_survived(tmp_path: Path) -> None:
    """SIGSTOP for three sessions: nobody may act meanwhile, everybody is back after it."""
    survives(tmp_path, lambda server, _cluster: server.pause())
