"""Metadata, offsets, coordinators, producer ids and descriptions: what clients need before they trust a broker."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.protocol.apis import INTER_BROKER, SUPPORTED, WIDER_FOR_BROKERS, ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.cluster.broker.scenes import TOPIC, with_topic
from tests.simulation.client import Client, batch
from tests.simulation.nodes import MemoryCluster


def topics(*names: str) -> list[Any]:
    return [request_class(ApiKey.METADATA).MetadataRequestTopic(name=name) for name in names]


@pytest.mark.parametrize("version", range(13))
def test_metadata_names_brokers_by_the_listener(version: int) -> None:
    """Each listener gets its own addresses, live brokers alone, and every partition with its leader."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        response = await client.send(ApiKey.METADATA, version, topics=topics(TOPIC), allow_auto_topic_creation=False)
        ports = {broker.node_id: broker.port for broker in response.brokers}
        assert ports == {broker: node.ports["CLIENTS"] for broker, node in cluster.nodes.items()}
        (topic,) = response.topics
        (partition,) = topic.partitions
        assert (topic.error_code, partition.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
        assert partition.leader_id == cluster.leader(TOPIC)
        assert sorted(partition.replica_nodes) == sorted(partition.isr_nodes) == list(cluster.broker_ids)
        peers = Client(await cluster.connect(1, "PEERS"))
        response = await peers.send(ApiKey.METADATA, version, topics=topics(TOPIC), allow_auto_topic_creation=False)
        assert {broker.port for broker in response.brokers} == {n.ports["PEERS"] for n in cluster.nodes.values()}

    with_topic(check, brokers=3)


def test_metadata_of_all_of_none_and_of_unknown_topics() -> None:
    """Null is all, an empty list none; an unknown name is 3, an impossible one 17, an unknown id 100."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        everything = await client.send(ApiKey.METADATA, 9, topics=None, allow_auto_topic_creation=False)
        assert [topic.name for topic in everything.topics] == [TOPIC]
        assert (await client.send(ApiKey.METADATA, 9, topics=[], allow_auto_topic_creation=False)).topics == []
        assert len((await client.send(ApiKey.METADATA, 0, topics=[])).topics) == 1
        names = topics("nowhere", "not/legal", ".")
        response = await client.send(ApiKey.METADATA, 9, topics=names, allow_auto_topic_creation=True)
        assert [topic.error_code for topic in response.topics] == [3, 17, 17]
        topic_id = cluster.nodes[1].metadata.topic(TOPIC).topic_id  # type: ignore[union-attr]
        by_id = request_class(ApiKey.METADATA).MetadataRequestTopic(name=None, topic_id=topic_id)
        response = await client.send(ApiKey.METADATA, 12, topics=[by_id], allow_auto_topic_creation=False)
        assert [topic.name for topic in response.topics] == [TOPIC]

    with_topic(check)


def test_a_dead_leader_is_not_named() -> None:
    """The partition is LEADER_NOT_AVAILABLE until another leads; the dead broker is not listed."""

    async def check(cluster: MemoryCluster, _client: Client) -> None:
        leader = cluster.leader(TOPIC)
        await cluster.crash(leader)
        await cluster.until(lambda: all(len(n.metadata.alive_brokers()) == 0 + 1 for n in cluster.nodes.values()))
        other = Client(await cluster.connect(next(iter(cluster.nodes))))
        response = await other.send(ApiKey.METADATA, 9, topics=topics(TOPIC), allow_auto_topic_creation=False)
        (partition,) = response.topics[0].partitions
        assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
        assert partition.offline_replicas == [leader]
        assert leader not in {broker.node_id for broker in response.brokers}

    async def on_two(cluster: MemoryCluster, client: Client) -> None:
        await check(cluster, client)

    with_topic(on_two, brokers=2, replicas=1)


def test_topics_are_created_when_asked_for_if_that_is_on() -> None:
    """auto.create.topics.enable: the first answer is LEADER_NOT_AVAILABLE, and the topic comes."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        response = await client.send(ApiKey.METADATA, 9, topics=topics("made"), allow_auto_topic_creation=True)
        assert [topic.error_code for topic in response.topics] == [ErrorCode.LEADER_NOT_AVAILABLE]
        await cluster.until(lambda: cluster.leader("made") == 1)
        response = await client.send(ApiKey.METADATA, 9, topics=topics("never"), allow_auto_topic_creation=False)
        assert [topic.error_code for topic in response.topics] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

    with_topic(check, auto_create_topics_enable="true")


@pytest.mark.parametrize("version", range(1, 8))
def test_offsets_are_listed(version: int) -> None:
    """Latest, earliest, by time, and from version 7 the newest time."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        for time in (1000, 2000, 3000):
            await client.produce(TOPIC, batch(b"v", timestamp=time))
        assert await client.list_offset(TOPIC, -1, version=version) == (ErrorCode.NONE, 3)
        assert await client.list_offset(TOPIC, -2, version=version) == (ErrorCode.NONE, 0)
        assert await client.list_offset(TOPIC, 1500, version=version) == (ErrorCode.NONE, 1)
        assert await client.list_offset(TOPIC, 9000, version=version) == (ErrorCode.NONE, -1)
        newest = await client.list_offset(TOPIC, -3, version=version)
        assert newest == ((ErrorCode.NONE, 2) if version >= 7 else (ErrorCode.UNSUPPORTED_VERSION, -1))
        assert (await client.list_offset("nowhere", -1, version=version))[0] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    with_topic(check)


@pytest.mark.parametrize("version", [4, 5])
def test_a_new_leader_does_not_step_back(version: int) -> None:
    """OFFSET_NOT_AVAILABLE while the watermark has not reached the epoch's start (5 below version 5)."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await client.produce(TOPIC, batch(b"a"))
        leader = cluster.leader(TOPIC)
        state = cluster.nodes[leader].replicas.partitions[TOPIC, 0].leader
        assert state is not None
        state.epoch_start_offset = 5
        code = ErrorCode.OFFSET_NOT_AVAILABLE if version >= 5 else ErrorCode.LEADER_NOT_AVAILABLE
        assert (await client.list_offset(TOPIC, -1, version=version))[0] is code
        assert (await client.list_offset(TOPIC, 1 << 60, version=version))[0] is code
        assert await client.list_offset(TOPIC, -2, version=version) == (ErrorCode.NONE, 0)

    with_topic(check)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_the_end_of_an_epoch(version: int) -> None:
    """OffsetForLeaderEpoch: the current epoch ends at the log's end, an unknown one is (-1, -1) without an error."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await client.produce(TOPIC, batch(b"a", b"b"))
        request = request_class(ApiKey.OFFSET_FOR_LEADER_EPOCH)

        async def ask(epoch: int, current: int = -1) -> tuple[int, int, int]:
            asked = request.OffsetForLeaderTopic.OffsetForLeaderPartition(
                partition=0, leader_epoch=epoch, current_leader_epoch=current
            )
            topic = request.OffsetForLeaderTopic(topic=TOPIC, partitions=[asked])
            response = await client.send(ApiKey.OFFSET_FOR_LEADER_EPOCH, version, topics=[topic])
            found = response.topics[0].partitions[0]
            return found.error_code, found.leader_epoch, found.end_offset

        assert await ask(0) == (ErrorCode.NONE, 0, 2)
        assert await ask(3) == (ErrorCode.NONE, -1, -1)
        assert await ask(0, current=4) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)

    with_topic(check)


@pytest.mark.parametrize("version", range(1, 5))
def test_there_is_no_coordinator_of_an_unknown_type(version: int) -> None:
    """FindCoordinator answers an error that no client retries, with no broker."""

    async def check(_cluster: MemoryCluster, client: Client) -> None:
        fields: dict[str, Any] = {"coordinator_keys": ["a", "b"]} if version >= 4 else {"key": "a"}
        response = await client.send(ApiKey.FIND_COORDINATOR, version, **fields, key_type=9)
        answers = response.coordinators if version >= 4 else [response]
        expected = (ErrorCode.INVALID_REQUEST, -1, "", -1)
        assert {(one.error_code, one.node_id, one.host, one.port) for one in answers} == {expected}

    with_topic(check)


@pytest.mark.parametrize("version", range(5))
def test_producer_ids_are_never_given_twice(version: int) -> None:
    """InitProducerId on every broker: distinct ids, epoch 0; for a transactional id only its coordinator answers."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        ids = []
        for broker in cluster.broker_ids:
            asked = Client(await cluster.connect(broker))
            for _ in range(3):
                response = await asked.send(
                    ApiKey.INIT_PRODUCER_ID, version, transactional_id=None, transaction_timeout_ms=-1
                )
                assert (response.error_code, response.producer_epoch) == (ErrorCode.NONE, 0)
                ids.append(response.producer_id)
        assert len(set(ids)) == len(ids)
        for name, code in (("tx", ErrorCode.NOT_COORDINATOR), ("", ErrorCode.INVALID_REQUEST)):
            fields = {"transactional_id": name, "transaction_timeout_ms": 1000}
            assert (await client.send(ApiKey.INIT_PRODUCER_ID, version, **fields)).error_code == code

    with_topic(check, brokers=2)


def test_half_a_producer_is_refused() -> None:
    """Version 3 and newer: id and epoch come together or not at all."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        fields = {"transactional_id": None, "transaction_timeout_ms": -1, "producer_id": 5, "producer_epoch": -1}
        response = await client.send(ApiKey.INIT_PRODUCER_ID, 4, **fields)
        assert response.error_code == ErrorCode.INVALID_REQUEST

    with_topic(check)


def test_configurations_are_described() -> None:
    """Of a topic what is set on it, of this broker what it was given; others are an error."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        controller = next(broker for broker, node in cluster.nodes.items() if node.control.is_controller)
        await cluster.create_topic("tuned", **{"max.message.bytes": "5000"})
        request = request_class(ApiKey.DESCRIBE_CONFIGS)
        asked = [
            request.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
            for kind, name, keys in (
                (2, "tuned", ["max.message.bytes", "min.insync.replicas", "no.such.key"]),
                (4, "1", None),
                (4, "9", None),
                (2, "nowhere", None),
                (8, "x", None),
            )
        ]
        for version in range(1, 5):
            response = await client.send(
                ApiKey.DESCRIBE_CONFIGS, version, resources=asked, include_synonyms=True, include_documentation=True
            )
            topic, broker, *wrong = response.results
            values = {entry.name: (entry.value, entry.config_source) for entry in topic.configs}
            assert values == {"max.message.bytes": ("5000", 1), "min.insync.replicas": ("1", 4)}
            assert {entry.name: entry.value for entry in broker.configs}["replica.lag.time.max.ms"] == "4000"
            assert [entry.error_code for entry in wrong] == [42, 3, 42]
        assert controller == 1
        leader = Client(await cluster.connect(cluster.leader("tuned")))
        assert (await leader.produce("tuned", batch(b"x" * 6000))).error is ErrorCode.MESSAGE_TOO_LARGE

    with_topic(check)


@pytest.mark.parametrize("version", [0, 1])
def test_the_cluster_is_described(version: int) -> None:
    """DescribeCluster: id, controller, brokers by listener."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        response = await client.send(ApiKey.DESCRIBE_CLUSTER, version)
        assert response.error_code == ErrorCode.NONE
        assert response.cluster_id == cluster.nodes[1].metadata.cluster_id
        assert response.controller_id == next(b for b, n in cluster.nodes.items() if n.control.is_controller)
        assert [broker.broker_id for broker in response.brokers] == list(cluster.broker_ids)

    with_topic(check, brokers=2)


def test_only_the_controller_changes_topics() -> None:
    """NOT_CONTROLLER from others, and their Metadata names the controller."""

    async def check(cluster: MemoryCluster, _client: Client) -> None:
        other = next(broker for broker, node in cluster.nodes.items() if not node.control.is_controller)
        client = Client(await cluster.connect(other))
        request = request_class(ApiKey.CREATE_PARTITIONS)
        grown = request.CreatePartitionsTopic(name=TOPIC, count=2, assignments=None)
        fields: dict[str, Any] = {"topics": [grown], "timeout_ms": 1000, "validate_only": False}
        response = await client.send(ApiKey.CREATE_PARTITIONS, 2, **fields)
        assert [entry.error_code for entry in response.results] == [ErrorCode.NOT_CONTROLLER]
        found = await client.send(ApiKey.METADATA, 9, topics=[], allow_auto_topic_creation=False)
        controller = Client(await cluster.connect(found.controller_id))
        response = await controller.send(ApiKey.CREATE_PARTITIONS, 2, **fields)
        assert [entry.error_code for entry in response.results] == [ErrorCode.NONE]
        await cluster.until(lambda: cluster.leader(TOPIC, 1) > 0)

    with_topic(check, brokers=2)


@pytest.mark.parametrize("version", range(4))
def test_api_versions_are_advertised(version: int) -> None:
    """Each listener shows what it serves, no more: the tables that docs/apis.md is made from. Requests between brokers
    are shown on their own listener alone."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        fields = {"client_software_name": "test", "client_software_version": "1"} if version >= 3 else {}
        response = await client.send(ApiKey.API_VERSIONS, version, **fields)
        found = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
        assert response.error_code == ErrorCode.NONE
        assert found == {int(key): window for key, window in SUPPORTED.items()}
        peers = Client(await cluster.connect(1, "PEERS"))
        response = await peers.send(ApiKey.API_VERSIONS, version, **fields)
        found = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
        assert found == {int(key): window for key, window in {**SUPPORTED, **INTER_BROKER, **WIDER_FOR_BROKERS}.items()}

    with_topic(check)


def test_software_names_must_be_names() -> None:
    """KIP-511: else INVALID_REQUEST, after which librdkafka asks with version 0."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        fields = {"client_software_name": "-", "client_software_version": "1"}
        assert (await client.send(ApiKey.API_VERSIONS, 3, **fields)).error_code == ErrorCode.INVALID_REQUEST

    with_topic(check)
