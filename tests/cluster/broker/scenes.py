"""Scenes: a fresh cluster with one topic, for the tests of handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.simulation.client import Client
from tests.simulation.nodes import MemoryCluster
from tests.support.virtual_time import run

TOPIC = "t"


async def client_of_leader(cluster: MemoryCluster, topic: str = TOPIC) -> Client:
    return Client(await cluster.connect(cluster.leader(topic)))


def with_topic(
    check: Callable[[MemoryCluster, Client], Awaitable[None]],
    brokers: int = 1,
    replicas: int | None = None,
    **properties: str,
) -> None:
    """Run ``check`` on a fresh cluster that has the topic, with a client of its leader."""

    async def main() -> None:
        async with MemoryCluster(
            brokers, {key.replace("_", "."): value for key, value in properties.items()}
        ) as cluster:
            await cluster.create_topic(TOPIC, replicas=replicas)
            await check(cluster, await client_of_leader(cluster))

    run(main())


def cut_followers(cluster: MemoryCluster) -> list[tuple[str, str]]:
    """Nothing reaches the leader from its followers any more, and the other way round."""
    leader = cluster.leader(TOPIC)
    links = []
    for broker_id in cluster.broker_ids:
        if broker_id != leader:
            links += [(f"b{broker_id}", f"b{leader}"), (f"b{leader}", f"b{broker_id}")]
    for link in links:
        cluster.network.cut(*link)
    return links
