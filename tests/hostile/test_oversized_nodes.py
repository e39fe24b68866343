"""What ZooKeeper does not take: an administrator's request must never cost a cluster its control plane (C1)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cluster.broker.control.controller.topics import Topics
from cluster.broker.control.office import candidate
from cluster.metadata import limits
from cluster.metadata.paths import topic_config_path, topic_path
from cluster.metadata.znodes import TopicRegistration
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.cluster.broker.control.cluster import SESSION_MS, Cluster, create_topics_request, serve
from tests.cluster.broker.handlers.test_configs import SET, TOPIC, alter, stored
from tests.simulation.client import Client
from tests.simulation.nodes import MemoryCluster
from tests.support.virtual_time import run

#: A legal number, and a megabyte and a half that mean nothing.
LONG_FIVE = " " * 1_500_000 + "5"
#: As many as a text of a request may have, about.
BLANKS = " " * 32_000


def with_cluster(check: Callable[[Cluster], Awaitable[None]]) -> None:
    async def main() -> None:
        cluster = Cluster()
        await cluster.start(1, 2, 3)
        try:
            await check(cluster)
        finally:
            await cluster.stop()

    run(main())


async def create(cluster: Cluster, name: str, partitions: int = 1, **configs: Any) -> Any:
    request = create_topics_request([(name, partitions, 3)], configs=configs)
    return (await serve(cluster.controller.plane, request, 7)).topics[0]


async def grow(cluster: Cluster, name: str, count: int) -> Any:
    request = request_class(ApiKey.CREATE_PARTITIONS)
    topic = request.CreatePartitionsTopic(name=name, count=count, assignments=None)
    response = await serve(cluster.controller.plane, request(topics=[topic], timeout_ms=5000, validate_only=False), 3)
    return response.results[0]


async def failover(cluster: Cluster) -> None:
    """A leader killed now is replaced within a session and a second."""
    leader = cluster.leader("t")
    killed = cluster.brokers.pop(leader)
    await killed.crash()
    await cluster.until(lambda: cluster.leader("t") not in (leader, -1), SESSION_MS / 1000 + 1)


def test_a_value_is_stored_as_it_is_meant() -> None:
    """Created, altered, replaced: blanks, zeros and repetitions take no room in ZooKeeper."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        policies = ",".join(["delete"] * 4000)
        await cluster.create_topic("new", **{"retention.ms": BLANKS + "5", "cleanup.policy": policies})
        assert stored(cluster, topic_config_path("new")) == {"retention.ms": "5", "cleanup.policy": "delete"}
        entries = ("retention.ms", SET, BLANKS + "5"), ("flush.messages", SET, "0007")
        assert (await alter(client, TOPIC, "new", *entries))[0] is ErrorCode.NONE
        assert stored(cluster, topic_config_path("new"))["flush.messages"] == "7"
        resource = request_class(ApiKey.ALTER_CONFIGS).AlterConfigsResource
        asked = resource(
            resource_type=TOPIC,
            resource_name="new",
            configs=[resource.AlterableConfig(name="unclean.leader.election.enable", value=BLANKS + "TRUE")],
        )
        await client.send(ApiKey.ALTER_CONFIGS, 2, resources=[asked], validate_only=False)
        assert stored(cluster, topic_config_path("new")) == {"unclean.leader.election.enable": "true"}

    async def main() -> None:
        async with MemoryCluster(1) as cluster:
            await check(cluster, Client(await cluster.connect(1)))

    run(main())


def test_an_error_does_not_repeat_megabytes() -> None:
    """A value that is refused is quoted from its beginning."""

    async def check(cluster: Cluster) -> None:
        refused = await create(cluster, "t", **{"retention.ms": "x" * 1_500_000})
        assert refused.error_code == ErrorCode.INVALID_CONFIG
        assert "retention.ms" in refused.error_message
        assert len(refused.error_message) < 500

    with_cluster(check)


def test_a_topic_does_not_grow_beyond_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """POLICY_VIOLATION, nothing written, and the controller stays in office; a move that does not fit neither."""
    monkeypatch.setattr(limits, "MAX_NODE_BYTES", 1200)

    async def check(cluster: Cluster) -> None:
        await cluster.create_topic("t", 50)
        epoch = cluster.tree.get("/controller_epoch")
        before = cluster.tree.get(topic_path("t"))
        refused = await grow(cluster, "t", 500)
        assert refused.error_code == ErrorCode.POLICY_VIOLATION
        assert "ZooKeeper" in refused.error_message
        assert (await create(cluster, "large", 500)).error_code == ErrorCode.POLICY_VIOLATION
        assert cluster.tree.exists(topic_path("large")) is None
        assert cluster.tree.exists(topic_config_path("large")) is None
        answer = await _move(cluster, 50)
        assert {p.error_code for p in answer.responses[0].partitions} == {ErrorCode.POLICY_VIOLATION}
        assert cluster.tree.get(topic_path("t")) == before
        assert (await grow(cluster, "t", 55)).error_code == ErrorCode.NONE
        assert len(TopicRegistration.decode("t", cluster.tree.get(topic_path("t"))[0]).partitions) == 55
        assert cluster.tree.get("/controller_epoch") == epoch
        await failover(cluster)

    with_cluster(check)


async def _move(cluster: Cluster, partitions: int) -> Any:
    """Every partition to one broker alone: what they leave is noted in the topic's node."""
    request = request_class(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
    asked = request.ReassignableTopic.ReassignablePartition
    topic = request.ReassignableTopic(
        name="t",
        partitions=[asked(partition_index=number, replicas=[1]) for number in range(partitions)],
    )
    return await serve(cluster.controller.plane, request(topics=[topic], timeout_ms=5000), 0)


def test_a_write_that_breaks_the_connection_is_given_up() -> None:
    """A ZooKeeper with a smaller limit than ours: an answer within two seconds, and elections go on."""

    async def check(cluster: Cluster) -> None:
        await cluster.create_topic("t", 1)
        cluster.tree.max_request_bytes = 20_000
        loop = asyncio.get_running_loop()
        begun = loop.time()
        refused = await grow(cluster, "t", 5000)
        assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert loop.time() - begun < 2
        assert len(json.loads(cluster.tree.get(topic_path("t"))[0])["partitions"]) == 1
        await failover(cluster)

    with_cluster(check)


def test_an_event_without_an_end_costs_an_office_not_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """While ZooKeeper is there an event of the controller has a deadline; then another controller reads all again."""
    deadline_s = 5.0
    monkeypatch.setattr(candidate, "EVENT_DEADLINE_S", deadline_s)

    async def check(cluster: Cluster) -> None:
        await cluster.create_topic("t", 1)
        with monkeypatch.context() as patch:

            async def stuck(_admin: Topics, *_asked: Any, **_more: Any) -> Any:
                await asyncio.get_running_loop().create_future()

            patch.setattr(Topics, "create", stuck)
            refused = await asyncio.wait_for(create(cluster, "never"), deadline_s + 1)
        assert refused.error_code == ErrorCode.NOT_CONTROLLER
        await cluster.until(lambda: any(b.plane.is_controller for b in cluster.brokers.values()), 2)
        assert (await create(cluster, "next")).error_code == ErrorCode.NONE

    with_cluster(check)


def test_waiting_for_zookeeper_is_no_fault_of_the_event() -> None:
    """The deadline counts an unbroken connection: while it is lost, and after it is back, the event has its time."""

    async def check(cluster: Cluster) -> None:
        session = cluster.controller.plane._session
        store = cluster.controller.store
        loop = asyncio.get_running_loop()
        begun = loop.time()

        async def event() -> None:
            async with session.within(0.5):
                await asyncio.sleep(0.3)
                store.cut()
                await asyncio.sleep(1.0)
                store.heal()
                await asyncio.sleep(10)

        with pytest.raises(TimeoutError):
            await event()
        assert loop.time() - begun == pytest.approx(1.8, abs=0.01)

    with_cluster(check)
