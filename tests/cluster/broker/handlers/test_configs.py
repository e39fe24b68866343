"""Configurations are changed while brokers run: stored as Kafka stores them, taken over by all, told truly."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.simulation.client import Client, batch
from tests.simulation.nodes import MemoryCluster
from tests.support.virtual_time import run

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER = 2, 4


async def alter(
    client: Client, kind: int, name: str, *entries: tuple[str, int, str | None], version: int = 1, **more: Any
) -> tuple[ErrorCode, str | None]:
    resource = request_class(ApiKey.INCREMENTAL_ALTER_CONFIGS).AlterConfigsResource
    asked = resource(
        resource_type=kind,
        resource_name=name,
        configs=[resource.AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in entries],
    )
    fields = {"validate_only": False, **more}
    answer = await client.send(ApiKey.INCREMENTAL_ALTER_CONFIGS, version, resources=[asked], **fields)
    [result] = answer.responses
    return ErrorCode(result.error_code), result.error_message


async def described(client: Client, kind: int, name: str) -> dict[str, Any]:
    request = request_class(ApiKey.DESCRIBE_CONFIGS)
    asked = request.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    answer = await client.send(
        ApiKey.DESCRIBE_CONFIGS, 4, resources=[asked], include_synonyms=True, include_documentation=False
    )
    [result] = answer.results
    assert result.error_code == ErrorCode.NONE, result.error_message
    return {entry.name: entry for entry in result.configs}


def stored(cluster: MemoryCluster, path: str) -> dict[str, str]:
    found = json.loads(cluster.tree.get(path)[0])
    assert found["version"] == 1
    return dict(found["config"])


def with_cluster(check: Any, brokers: int = 2, **properties: str) -> None:
    async def body() -> None:
        keys = {name.replace("_", "."): value for name, value in properties.items()}
        async with MemoryCluster(brokers, keys) as cluster:
            await cluster.create_topic("t")
            await check(cluster, [Client(await cluster.connect(broker)) for broker in cluster.broker_ids])
            assert not cluster.failures

    run(body())


def logs(cluster: MemoryCluster) -> list[Any]:
    return [node.replicas.partitions["t", 0].log.config for node in cluster.nodes.values()]


def test_a_topic_s_settings_change_everywhere_without_a_restart() -> None:
    """Stored, told by a node in /config/changes, held by every replica's log; deleting one returns to the default."""

    async def check(cluster: MemoryCluster, clients: list[Client]) -> None:
        code, _ = await alter(clients[1], TOPIC, "t", ("segment.bytes", SET, "5000"), ("retention.ms", SET, "60000"))
        assert code is ErrorCode.NONE
        assert stored(cluster, "/config/topics/t") == {"segment.bytes": "5000", "retention.ms": "60000"}
        assert cluster.tree.children("/config/changes") == ["config_change_0000000000"]
        change = json.loads(cluster.tree.get("/config/changes/config_change_0000000000")[0])
        assert change == {"version": 2, "entity_path": "topics/t"}
        await cluster.until(lambda: [log.segment_bytes for log in logs(cluster)] == [5000, 5000])
        entry = (await described(clients[0], TOPIC, "t"))["segment.bytes"]
        assert (entry.value, entry.config_source, entry.read_only) == ("5000", 1, False)
        assert [(s.name, s.source) for s in entry.synonyms] == [("segment.bytes", 1), ("log.segment.bytes", 5)]
        await alter(clients[0], TOPIC, "t", ("segment.bytes", DELETE, None), ("cleanup.policy", APPEND, "compact"))
        assert stored(cluster, "/config/topics/t") == {"retention.ms": "60000", "cleanup.policy": "delete,compact"}
        await cluster.until(lambda: all(log.segment_bytes == 1 << 30 and log.is_compacted for log in logs(cluster)))
        assert (await described(clients[1], TOPIC, "t"))["segment.bytes"].config_source == 5

    with_cluster(check)


def test_min_insync_replicas_holds_at_once() -> None:
    """Raised above what there is, acks=all is refused; lowered again, what waited goes through."""

    async def check(cluster: MemoryCluster, clients: list[Client]) -> None:
        await cluster.crash(2)
        await cluster.until(lambda: cluster.leader("t") == 1 and cluster.isr("t") == {1})
        client = clients[0]
        assert (await client.produce("t", batch(b"a"))).error is ErrorCode.NOT_ENOUGH_REPLICAS
        await alter(client, TOPIC, "t", ("min.insync.replicas", SET, "1"))
        leader = cluster.nodes[1].replicas.partitions["t", 0].leader
        assert leader is not None
        await cluster.until(lambda: leader.min_insync_replicas == 1)
        assert (await client.produce("t", batch(b"b"))).error is ErrorCode.NONE
        await alter(client, TOPIC, "t", ("min.insync.replicas", DELETE, None))
        await cluster.until(lambda: leader.min_insync_replicas == 2)

    with_cluster(check)


@pytest.mark.parametrize(
    ("kind", "name", "entry", "code", "text"),
    [
        (TOPIC, "t", ("retention.ms", SET, "soon"), ErrorCode.INVALID_CONFIG, "retention.ms"),
        (TOPIC, "t", ("retenton.ms", SET, "1"), ErrorCode.INVALID_CONFIG, "did you mean"),
        (TOPIC, "t", ("retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG, "is not a list"),
        (TOPIC, "t", ("max.compaction.lag.ms", SET, "1"), ErrorCode.NONE, None),
        (TOPIC, "nowhere", ("retention.ms", SET, "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "nowhere"),
        (BROKER, "2", ("log.retention.ms", SET, "1"), ErrorCode.INVALID_REQUEST, "this is broker 1"),
        (BROKER, "1", ("listeners", SET, "X://:1"), ErrorCode.INVALID_CONFIG, "cannot be changed while"),
        (BROKER, "", ("min.insync.replicas", SET, "0"), ErrorCode.INVALID_CONFIG, "min.insync.replicas"),
        (8, "1", ("kafka", SET, "DEBUG"), ErrorCode.INVALID_REQUEST, "resource type 8"),
    ],
)
def test_what_cannot_be_set_is_refused_and_nothing_is_written(kind, name, entry, code, text) -> None:  # type: ignore[no-untyped-def]
    """With a clear text; validate_only answers the same and writes nothing either."""

    async def check(cluster: MemoryCluster, clients: list[Client]) -> None:
        for validate_only in (True, False):
            if validate_only or code is not ErrorCode.NONE:
                found, message = await alter(clients[0], kind, name, entry, validate_only=validate_only)
                assert (found, (text or "") in (message or "")) == (code, True), message
        assert cluster.tree.children("/config/changes") == []
        assert cluster.tree.children("/config/brokers") == []
        assert stored(cluster, "/config/topics/t") == {}

    with_cluster(check, brokers=1)


def test_settings_of_brokers_give_topics_their_defaults() -> None:
    """On one broker, on all; its own goes first, the topic's before both; after a restart they hold from the start."""

    async def check(cluster: MemoryCluster, clients: list[Client]) -> None:
        assert (await alter(clients[0], BROKER, "", ("log.segment.bytes", SET, "7000")))[0] is ErrorCode.NONE
        assert (await alter(clients[1], BROKER, "2", ("log.segment.bytes", SET, "8000")))[0] is ErrorCode.NONE
        assert stored(cluster, "/config/brokers/<default>") == {"log.segment.bytes": "7000"}
        assert stored(cluster, "/config/brokers/2") == {"log.segment.bytes": "8000"}
        await cluster.until(lambda: [log.segment_bytes for log in logs(cluster)] == [7000, 8000])
        entry = (await described(clients[1], BROKER, "2"))["log.segment.bytes"]
        assert (entry.value, entry.config_source, entry.read_only) == ("8000", 2, False)
        assert [s.source for s in entry.synonyms] == [2, 3, 5]
        shared = await described(clients[1], BROKER, "")
        assert [(name, entry.value, entry.config_source) for name, entry in shared.items()] == [
            ("log.segment.bytes", "7000", 3)
        ]
        assert (await described(clients[0], BROKER, "1"))["listeners"].read_only
        await cluster.stop(2)
        await cluster.start(2)
        await cluster.until(lambda: ("t", 0) in cluster.nodes[2].replicas.partitions)
        assert [log.segment_bytes for log in logs(cluster)] == [7000, 8000]
        await alter(clients[0], TOPIC, "t", ("segment.bytes", SET, "9000"))
        await cluster.until(lambda: [log.segment_bytes for log in logs(cluster)] == [9000, 9000])

    with_cluster(check)


def test_unclean_election_is_allowed_while_it_runs() -> None:
    """A partition whose in-sync replica is gone is led by another as soon as the topic allows it, and not before.

    The new leader counts it, and only it.
    """

    async def check(cluster: MemoryCluster, clients: list[Client]) -> None:
        await cluster.until(lambda: cluster.leader("t") > 0)
        leader = cluster.leader("t")
        other = 5 - leader
        assert leader != 1
        assert other != 1
        await cluster.crash(other)
        await cluster.until(lambda: cluster.isr("t") == {leader})
        counters = cluster.nodes[leader].counters
        assert (counters.leader_elections, counters.unclean_leader_elections) == (1, 0)
        await cluster.crash(leader)
        await cluster.start(other)
        await asyncio.sleep(5)
        assert cluster.leader("t") == -1
        await alter(clients[0], TOPIC, "t", ("unclean.leader.election.enable", SET, "true"))
        await cluster.until(lambda: cluster.leader("t") == other)
        counters = cluster.nodes[other].counters
        await cluster.until(lambda: counters.leader_elections == 1)
        assert counters.unclean_leader_elections == 1

    async def body() -> None:
        async with MemoryCluster(3, {"min.insync.replicas": "1"}) as cluster:
            client = Client(await cluster.connect(1))
            topic = request_class(ApiKey.CREATE_TOPICS).CreatableTopic
            placed = topic(
                name="t",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[topic.CreatableReplicaAssignment(partition_index=0, broker_ids=[2, 3])],
                configs=[],
            )
            answer = await client.send(ApiKey.CREATE_TOPICS, 5, topics=[placed], timeout_ms=5000, validate_only=False)
            assert answer.topics[0].error_code == ErrorCode.NONE
            await check(cluster, [client])

    run(body())


def test_the_whole_configuration_is_replaced() -> None:
    """AlterConfigs: what it does not name is set no more. A resource twice in one request is refused."""

    async def check(cluster: MemoryCluster, clients: list[Client]) -> None:
        resource = request_class(ApiKey.ALTER_CONFIGS).AlterConfigsResource
        for version in range(3):
            for key, value in (("retention.ms", "5"), ("segment.bytes", "6000")):
                asked = resource(
                    resource_type=TOPIC,
                    resource_name="t",
                    configs=[resource.AlterableConfig(name=key, value=value)],
                )
                answer = await clients[0].send(ApiKey.ALTER_CONFIGS, version, resources=[asked], validate_only=False)
                assert [result.error_code for result in answer.responses] == [ErrorCode.NONE]
                assert stored(cluster, "/config/topics/t") == {key: value}
        answer = await clients[0].send(ApiKey.ALTER_CONFIGS, 2, resources=[asked, asked], validate_only=False)
        assert [result.error_code for result in answer.responses] == [ErrorCode.INVALID_REQUEST] * 2

    with_cluster(check, brokers=1)


def test_two_brokers_change_one_topic_at_once() -> None:
    """Neither change is lost: the second to write reads again."""

    async def check(cluster: MemoryCluster, clients: list[Client]) -> None:
        cluster.stores[1].lose_next_answer()
        answers = await asyncio.gather(
            alter(clients[0], TOPIC, "t", ("retention.ms", SET, "5")),
            alter(clients[1], TOPIC, "t", ("segment.bytes", SET, "6000"), version=0),
        )
        assert [code for code, _ in answers] == [ErrorCode.NONE] * 2
        assert stored(cluster, "/config/topics/t") == {"retention.ms": "5", "segment.bytes": "6000"}

    with_cluster(check)


def test_old_news_is_removed() -> None:
    """Nodes in /config/changes go after 15 minutes, with the next change."""

    async def check(cluster: MemoryCluster, clients: list[Client]) -> None:
        for bytes_, pause_s in (("5000", 16 * 60), ("6000", 1)):
            await alter(clients[0], TOPIC, "t", ("segment.bytes", SET, bytes_))
            await cluster.until(lambda bytes_=bytes_: logs(cluster)[0].segment_bytes == int(bytes_))  # type: ignore[misc]
            await asyncio.sleep(pause_s)
        assert cluster.tree.children("/config/changes") == ["config_change_0000000001"]

    async def body() -> None:
        async with MemoryCluster(1, {"connections.max.idle.ms": "-1"}) as cluster:
            await cluster.create_topic("t")
            await check(cluster, [Client(await cluster.connect(1))])

    from tests.support.virtual_time import VirtualTimeLoop

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(body())


@pytest.mark.parametrize("version", range(1, 5))
def test_log_directories_are_described(version: int) -> None:
    """Size and lag of each replica here; of all topics or of those asked for."""

    async def check(cluster: MemoryCluster, clients: list[Client]) -> None:
        await clients[0].produce("t", batch(b"x" * 1000))
        size = len(cluster.log_bytes(1, "t"))
        request = request_class(ApiKey.DESCRIBE_LOG_DIRS)
        for topics, found in (
            (None, {"t": [(0, size, 0)]}),
            ([request.DescribableLogDirTopic(topic="t", partitions=[0, 7])], {"t": [(0, size, 0)]}),
            ([request.DescribableLogDirTopic(topic="u", partitions=[0])], {}),
        ):
            answer = await clients[0].send(ApiKey.DESCRIBE_LOG_DIRS, version, topics=topics)
            [directory] = answer.results
            assert (directory.error_code, directory.log_dir) == (ErrorCode.NONE, "/data")
            assert {
                topic.name: [(p.partition_index, p.partition_size, p.offset_lag) for p in topic.partitions]
                for topic in directory.topics
            } == found
            if version >= 4:
                assert directory.usable_bytes > 0

    with_cluster(check, brokers=1)
