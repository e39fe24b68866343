"""The orders of AsyncAdmin, given to whole brokers in one process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from cluster.client import AdminError, AsyncAdmin
from cluster.client.cluster_calls import BROKER_RESOURCE, TOPIC_RESOURCE, UNCLEAN
from cluster.client.new_topic import NewTopic
from cluster.protocol.errors import ErrorCode
from tests.simulation.nodes import HOST, MemoryCluster
from tests.support.virtual_time import LoopClock, run


def with_admin(check: Callable[[MemoryCluster, AsyncAdmin], Awaitable[None]]) -> None:
    async def body() -> None:
        async with MemoryCluster(3, {"min.insync.replicas": "1"}) as cluster:
            bootstrap = [f"{HOST}:{node.ports['CLIENTS']}" for node in cluster.nodes.values()]
            admin = AsyncAdmin(bootstrap, cluster.network.transport("admin"), LoopClock(), 20_000)
            await admin.create_topics([NewTopic("t", assignment={0: [2, 1], 1: [1, 2]})])
            try:
                await check(cluster, admin)
            finally:
                await admin.close()

    run(body())


def test_topics_grow_and_go() -> None:
    """More partitions, never fewer; a topic that is not there is an error."""

    async def check(cluster: MemoryCluster, admin: AsyncAdmin) -> None:
        await admin.create_partitions("t", 4)
        assert len((await admin.describe(["t"]))["t"].partitions) == 4
        with pytest.raises(AdminError, match="already has 4 partitions"):
            await admin.create_partitions("t", 4)
        await admin.delete_topics(["t"])
        with pytest.raises(AdminError):
            await admin.delete_topics(["t"])
        with pytest.raises(AdminError):
            await admin.create_partitions("t", 9)

    with_admin(check)


def test_configurations_are_set_and_read() -> None:
    """Of a topic, of one broker, of all; a refused one says why."""

    async def check(cluster: MemoryCluster, admin: AsyncAdmin) -> None:
        await admin.set_config(TOPIC_RESOURCE, "t", {"retention.ms": "60000"})
        assert (await admin.config(TOPIC_RESOURCE, "t"))["retention.ms"] == "60000"
        await admin.set_config(TOPIC_RESOURCE, "t", {"retention.ms": None})
        assert (await admin.config(TOPIC_RESOURCE, "t"))["retention.ms"] == "604800000"
        await admin.set_config(BROKER_RESOURCE, "3", {"message.max.bytes": "5000"})
        assert (await admin.config(BROKER_RESOURCE, "3"))["message.max.bytes"] == "5000"
        assert await admin.config(BROKER_RESOURCE, "") == {}
        with pytest.raises(AdminError, match="cannot be changed while"):
            await admin.set_config(BROKER_RESOURCE, "3", {"listeners": "A://:1"})
        await admin.set_config(TOPIC_RESOURCE, "t", {"retention.ms": "1"}, validate_only=True)
        assert (await admin.config(TOPIC_RESOURCE, "t"))["retention.ms"] == "604800000"

    with_admin(check)


def test_leaders_are_elected() -> None:
    """All that need it, or those named, each with its own outcome."""

    async def check(cluster: MemoryCluster, admin: AsyncAdmin) -> None:
        await cluster.crash(2)
        await cluster.until(lambda: cluster.leader("t") == 1)
        await cluster.start(2)
        await cluster.until(lambda: cluster.isr("t") == {1, 2})
        assert await admin.elect_leaders() == {("t", 0): ErrorCode.NONE}
        assert cluster.leader("t") == 2
        assert await admin.elect_leaders(partitions=[("t", 0), ("t", 9)]) == {
            ("t", 0): ErrorCode.ELECTION_NOT_NEEDED,
            ("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert await admin.elect_leaders(UNCLEAN) == {}

    with_admin(check)


def test_partitions_are_moved() -> None:
    """Begun, seen on the way, done; what cannot be begun is an error."""

    async def check(cluster: MemoryCluster, admin: AsyncAdmin) -> None:
        cluster.network.cut("b3", "b2")
        await admin.reassign({("t", 0): [3]})
        found = await admin.reassignments()
        assert found["t", 0].replicas == (3, 2, 1)
        assert (found["t", 0].adding, found["t", 0].removing) == ((3,), (2, 1))
        await admin.reassign({("t", 0): None})
        assert await admin.reassignments() == {}
        cluster.network.heal("b3", "b2")
        await admin.reassign({("t", 0): [3]})
        await cluster.until(lambda: cluster.leader("t") == 3)
        assert await admin.reassignments() == {}
        with pytest.raises(AdminError, match="not alive"):
            await admin.reassign({("t", 0): [9]})

    with_admin(check)
