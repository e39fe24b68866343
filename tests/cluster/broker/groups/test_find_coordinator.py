"""FindCoordinator of groups over the wire: who leads the group's partition, and how that comes to be."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from cluster.broker.internal_topics import OFFSETS_TOPIC
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from tests.cluster.broker.groups.scenes import GROUP, Member, coordinator_of, is_served, service, with_groups
from tests.simulation.client import Client
from tests.simulation.nodes import HOST, MemoryCluster
from tests.support.virtual_time import run

#: Enough that each of three brokers leads some.
GROUPS = [f"group-{number}" for number in range(12)]
NOWHERE = (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, "", -1)


async def find(cluster: MemoryCluster, broker_id: int, group_id: str = GROUP, version: int = 4, **connect: Any) -> Any:
    """(error, broker id, host, port), asked of one broker."""
    client = Client(await cluster.connect(broker_id, **connect))
    fields: dict[str, Any] = {"coordinator_keys": [group_id]} if version >= 4 else {"key": group_id}
    fields |= {"key_type": 0} if version >= 1 else {}
    answer = await client.send(ApiKey.FIND_COORDINATOR, version, **fields)
    (found,) = answer.coordinators if version >= 4 else [answer]
    return found.error_code, found.node_id, found.host, found.port


@pytest.mark.parametrize("version", range(5))
def test_every_broker_names_the_leader(version: int) -> None:
    """The broker that answers for the group, at the address of the listener that was asked on."""

    async def check(cluster: MemoryCluster, _member: Member) -> None:
        coordinators = set()
        for group_id in GROUPS:
            await cluster.until(lambda group_id=group_id: is_served(cluster, group_id))
            coordinator = coordinator_of(cluster, group_id)
            coordinators.add(coordinator)
            assert service(cluster, coordinator).coordinator.status(group_id) is ErrorCode.NONE
            for listener in ("CLIENTS", "PEERS"):
                expected = (ErrorCode.NONE, coordinator, HOST, cluster.nodes[coordinator].ports[listener])
                for broker_id in cluster.broker_ids:
                    assert await find(cluster, broker_id, group_id, version, listener=listener) == expected
        assert coordinators == set(cluster.broker_ids)

    with_groups(check, brokers=3)


def test_several_groups_at_once() -> None:
    """Version 4: each is answered, once, in the order in which they were named."""

    async def check(cluster: MemoryCluster, member: Member) -> None:
        answer = await member.client.send(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=GROUPS * 2)
        assert [found.key for found in answer.coordinators] == GROUPS
        assert [found.node_id for found in answer.coordinators] == [coordinator_of(cluster, each) for each in GROUPS]

    with_groups(check, brokers=2)


def test_the_topic_is_created_when_it_is_first_asked_for() -> None:
    """Whatever ``auto.create.topics.enable`` says (the profile chaos has false): with the settings of the broker."""

    async def main() -> None:
        settings = {"offsets.topic.num.partitions": "3", "offsets.topic.replication.factor": "2"}
        async with MemoryCluster(3, settings) as cluster:
            assert await find(cluster, 1) == NOWHERE
            await cluster.until(lambda: is_served(cluster))
            metadata = cluster.nodes[1].metadata
            topic = metadata.topic(OFFSETS_TOPIC)
            assert topic is not None
            assert sorted(topic.partitions) == [0, 1, 2]
            assert {len(partition.replicas) for partition in topic.partitions.values()} == {2}
            assert (await find(cluster, 2))[:2] == (ErrorCode.NONE, coordinator_of(cluster))
            await cluster.until(lambda: metadata.has_topic_config(OFFSETS_TOPIC))
            assert metadata.topic_config(OFFSETS_TOPIC)["cleanup.policy"] == "compact"

    run(main())


def test_there_are_too_few_brokers(caplog: pytest.LogCaptureFixture) -> None:
    """Clients ask again, for a broker may come; the log has the reason, at most once a second."""

    async def main() -> None:
        async with MemoryCluster(1, {"offsets.topic.replication.factor": "3"}) as cluster:
            for _ in range(20):
                assert await find(cluster, 1) == NOWHERE
                await cluster.until(lambda: any("cannot be created" in each.getMessage() for each in caplog.records))

    with caplog.at_level(logging.WARNING):
        run(main())
    said = [each.getMessage() for each in caplog.records if "cannot be created" in each.getMessage()]
    assert len(said) == 1
    assert OFFSETS_TOPIC in said[0] and "eplication factor" in said[0]


def test_another_broker_takes_over() -> None:
    """While no one leads there is no coordinator; the next leader is the next one, with what was committed."""

    async def check(cluster: MemoryCluster, member: Member) -> None:
        assert set((await member.commit({("t", 0): 7})).values()) == {ErrorCode.NONE}
        former = coordinator_of(cluster)
        asked = next(broker_id for broker_id in cluster.broker_ids if broker_id != former)
        await cluster.crash(former)
        seen = set()
        while (found := await find(cluster, asked))[:2] in ((ErrorCode.NONE, former), NOWHERE[:2]):
            seen.add(found[0])
        assert found[0] == ErrorCode.NONE and found[1] != former
        await cluster.until(lambda: is_served(cluster))
        moved = Member(Client(await cluster.connect(coordinator_of(cluster))))
        assert await moved.committed() == (ErrorCode.NONE, {("t", 0): 7})

    with_groups(check, brokers=3)
