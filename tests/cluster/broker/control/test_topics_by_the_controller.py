"""CreateTopics, CreatePartitions and DeleteTopics through the control plane."""

from __future__ import annotations

import asyncio
import json
from uuid import UUID

import pytest

from cluster.config.topic import TOPIC_KEYS
from cluster.controller.topics import TopicRequest
from cluster.metadata.paths import topic_config_path, topic_path
from cluster.metadata.store import Create
from cluster.metadata.znodes import TopicRegistration, encode_config
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import decode_response, encode_response, request_class, response_class
from tests.cluster.broker.control.cluster import Cluster, create_topics_request, serve
from tests.support.virtual_time import run


async def create(cluster: Cluster, topics, version: int = 7, **more):
    return await serve(cluster.controller.plane, create_topics_request(topics, **more), version)


@pytest.mark.parametrize(
    ("topics", "more", "code", "text"),
    [
        ([("bad/name", 1, 1)], {}, ErrorCode.INVALID_TOPIC_EXCEPTION, "invalid"),
        ([("t", 1, 4)], {}, ErrorCode.INVALID_REPLICATION_FACTOR, "larger than available brokers: 3"),
        ([("t", 0, 1)], {}, ErrorCode.INVALID_PARTITIONS, "larger than 0"),
        ([("t", -1, -1)], {"assignments": {0: [1, 9]}}, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Unknown broker"),
        ([("t", 1, 1)], {"configs": {"retenton.ms": "1"}}, ErrorCode.INVALID_CONFIG, "did you mean 'retention.ms'"),
        ([("t", 1, 1)], {"configs": {"retention.ms": "soon"}}, ErrorCode.INVALID_CONFIG, "retention.ms"),
        ([("t", 1, 1)], {"configs": {"retention.ms": None}}, ErrorCode.INVALID_CONFIG, "Null value"),
    ],
)
def test_what_cannot_be_created_is_refused_with_a_clear_text(topics, more, code, text):
    """A topic that is refused has the error's reason in words, and nothing is written for it."""

    async def body():
        cluster = Cluster()
        await cluster.start(1, 2, 3)
        [result] = (await create(cluster, topics, **more)).topics
        assert result.error_code == code
        assert text in result.error_message
        assert (result.num_partitions, result.replication_factor) == (-1, -1)
        assert cluster.tree.children("/brokers/topics") == []
        assert cluster.tree.children("/config/topics") == []
        await cluster.stop()

    run(body())


def test_one_bad_topic_does_not_stop_the_good_one():
    """Each has its own answer; a name that comes twice is refused both times."""

    async def body():
        cluster = Cluster()
        await cluster.start(1, 2, 3)
        response = await create(cluster, [("good", 2, 3), ("bad", 1, 9), ("twice", 1, 1), ("twice", 1, 1)])
        assert {t.name: t.error_code for t in response.topics} == {
            "good": ErrorCode.NONE,
            "bad": ErrorCode.INVALID_REPLICATION_FACTOR,
            "twice": ErrorCode.INVALID_REQUEST,
        }
        [again] = (await create(cluster, [("good", 1, 1)])).topics
        assert again.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        await cluster.stop()

    run(body())


def test_defaults_and_validate_only():
    """-1 is num.partitions and default.replication.factor; validate_only answers the same and writes nothing."""

    async def body():
        cluster = Cluster()
        await cluster.start(1, 2, 3, num_partitions=3, default_replication_factor=2)
        for validate_only in (True, False):
            [result] = (await create(cluster, [("t", -1, -1)], validate_only=validate_only)).topics
            assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 3, 2)
            assert (cluster.tree.exists(topic_path("t")) is None) is validate_only
        await cluster.stop()

    run(body())


@pytest.mark.parametrize("version", [2, 3, 4, 5, 6, 7])
def test_every_version_s_answer_can_be_encoded(version):
    """Topic ids from 7, numbers and configurations from 5."""

    async def body():
        cluster = Cluster()
        await cluster.start(1, min_insync_replicas=1)
        response = await create(cluster, [("t", 2, 1), ("bad/", 1, 1)], version, configs={"retention.ms": "5"})
        _, read = decode_response(
            ApiKey.CREATE_TOPICS, version, encode_response(ApiKey.CREATE_TOPICS, version, 1, response)
        )
        good, bad = read.topics
        assert (good.error_code, bad.error_code) == (0, ErrorCode.INVALID_TOPIC_EXCEPTION)
        if version >= 5:
            told = {entry.name: (entry.value, entry.config_source) for entry in good.configs}
            assert set(told) == set(TOPIC_KEYS.keys)
            assert told["retention.ms"] == ("5", 1), "set on the topic"
            assert told["min.insync.replicas"] == ("1", 4), "from the broker's file"
            assert told["cleanup.policy"] == ("delete", 5), "the default"
            assert bad.configs == []
            assert (good.num_partitions, bad.num_partitions) == (2, -1)
        if version >= 7:
            assert good.topic_id == cluster.brokers[1].cache.topic("t").topic_id
        await cluster.stop()

    run(body())


def test_configurations_are_stored_before_the_topic_is_seen():
    """A leftover of a former topic of this name is overwritten, not taken over."""

    async def body():
        cluster = Cluster()
        brokers = await cluster.start(1, 2)
        cluster.tree.multi(0, [Create(topic_config_path("t"), encode_config({"retention.ms": "1"}))])
        await create(cluster, [("t", 1, 2)], configs={"min.insync.replicas": "2"})
        assert json.loads(cluster.tree.get(topic_config_path("t"))[0])["config"] == {"min.insync.replicas": "2"}
        assert brokers[1].configs_at_roles == {"t": {"min.insync.replicas": "2"}}
        await cluster.stop()

    run(body())


def test_a_broker_that_is_not_controller_sends_the_client_away():
    """41 for every topic; clients ask Metadata for the controller."""

    async def body():
        cluster = Cluster()
        _, second = await cluster.start(1, 2)
        response = await serve(second.plane, create_topics_request([("t", 1, 1)]), 7)
        assert [topic.error_code for topic in response.topics] == [ErrorCode.NOT_CONTROLLER]
        await cluster.stop()

    run(body())


def test_a_broker_has_the_controller_make_a_topic():
    """Over the wire or in process, with its settings; why not, if it is there already."""

    async def body():
        cluster = Cluster()
        for name, broker in zip(("here", "there"), await cluster.start(1, 2), strict=True):
            wanted = TopicRequest(name, 2, 1, config=[("cleanup.policy", "compact")])
            assert await broker.plane.controller.create_topic(wanted, 5000) is None
            assert len(broker.cache.topic(name).partitions) == 2
            assert json.loads(cluster.tree.get(topic_config_path(name))[0])["config"] == {"cleanup.policy": "compact"}
            refused = await broker.plane.controller.create_topic(wanted, 5000)
            assert (refused.error_code, str(refused)) == (
                ErrorCode.TOPIC_ALREADY_EXISTS,
                f"Topic '{name}' already exists.",
            )
        await cluster.stop()

    run(body())


def test_a_broker_that_does_not_answer_makes_it_a_timeout_but_the_topic_is_there():
    """CreateTopics answers REQUEST_TIMED_OUT (7), and creation continues."""

    async def body():
        cluster = Cluster()
        await cluster.start(1, 2)
        cluster.network.cut("node-1", "node-2")
        began = asyncio.get_running_loop().time()
        [result] = (await create(cluster, [("t", 1, 2)], timeout_ms=700)).topics
        assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert 0.6 < asyncio.get_running_loop().time() - began < 0.8
        assert cluster.state() is not None
        await cluster.stop()

    run(body())


def test_a_topic_that_somebody_else_wrote_is_taken_in():
    """/brokers/topics is watched: Kafka's own tools of old, or a predecessor that died half-way."""

    async def body():
        cluster = Cluster()
        brokers = await cluster.start(1, 2)
        registration = TopicRegistration(UUID(int=77), {0: (2, 1)})
        cluster.tree.create(0, Create(topic_path("x"), registration.encode()))
        await cluster.until(lambda: cluster.leader("x") == 2)
        await cluster.until(lambda: brokers[1].cache.partition("x", 0))
        await cluster.stop()

    run(body())


def test_partitions_are_added():
    """The new total; existing ones stay; brokers hear of the new ones."""

    async def body():
        cluster = Cluster()
        brokers = await cluster.start(1, 2, 3)
        await create(cluster, [("t", 2, 2)])
        before = [cluster.state("t", n) for n in range(2)]
        request = request_class(ApiKey.CREATE_PARTITIONS)
        for count, code in ((5, ErrorCode.NONE), (3, ErrorCode.INVALID_PARTITIONS)):
            message = request(
                version=3,
                topics=[request.CreatePartitionsTopic(name="t", count=count, assignments=None)],
                timeout_ms=3000,
                validate_only=False,
            )
            [result] = (await serve(cluster.controller.plane, message, 3)).results
            assert result.error_code == code
        assert [cluster.state("t", n) for n in range(2)] == before
        for broker in brokers:
            assert sorted(broker.cache.topic("t").partitions) == [0, 1, 2, 3, 4]
        await cluster.stop()

    run(body())


def delete_request(*names: str, timeout_ms: int = 5000):
    request = request_class(ApiKey.DELETE_TOPICS)
    topics = [request.DeleteTopicState(name=name, topic_id=None) for name in names]
    return request(version=6, topics=topics, timeout_ms=timeout_ms)


def test_a_topic_is_deleted_everywhere():
    """Brokers stop and erase it, forget it in their metadata, and its znodes go; the name is free again."""

    async def body():
        cluster = Cluster()
        brokers = await cluster.start(1, 2, 3)
        await create(cluster, [("t", 3, 3)])
        former = brokers[0].cache.topic("t").topic_id
        response = await serve(cluster.controller.plane, delete_request("t", "nope"), 6)
        assert [r.error_code for r in response.responses] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        for path in ("/brokers/topics", "/config/topics", "/admin/delete_topics"):
            assert cluster.tree.children(path) == []
        for broker in brokers:
            assert broker.cache.topic("t") is None
            assert len(broker.stopped) == 3
            assert not broker.roles
        [again] = (await create(cluster, [("t", 1, 3)])).topics
        assert (again.error_code, again.topic_id == former) == (0, False)
        await cluster.stop()

    run(body())


def test_a_deletion_waits_for_a_broker_that_is_away():
    """Its replica would come back to life otherwise; the request survives and is finished when the broker is back."""

    async def body():
        cluster = Cluster()
        await cluster.start(1, 2, 3)
        await create(cluster, [("t", 1, 3)])
        await cluster.brokers[3].crash()
        await cluster.until(lambda: len(cluster.controller.cache.alive_brokers()) == 2)
        request = delete_request("t", timeout_ms=500)
        response = await serve(cluster.controller.plane, request, 6)
        assert [r.error_code for r in response.responses] == [ErrorCode.REQUEST_TIMED_OUT]
        assert cluster.tree.exists(topic_path("t")) is not None
        await cluster.brokers[1].crash()
        await cluster.start(1, 3)
        await cluster.until(lambda: cluster.tree.exists(topic_path("t")) is None)
        assert cluster.tree.children("/admin/delete_topics") == []
        await cluster.stop()

    run(body())


def test_a_broker_that_did_not_delete_is_asked_again():
    """Also if it never went away: nothing else would happen that lets the controller look again."""

    async def body():
        cluster = Cluster()
        brokers = await cluster.start(1, 2, 3)
        await create(cluster, [("t", 1, 3)])
        obey, refused = brokers[2].handle, 0

        async def refuse(request, version):
            nonlocal refused
            if request.API_KEY == ApiKey.STOP_REPLICA and refused < 5:
                refused += 1
                return response_class(ApiKey.STOP_REPLICA)(error_code=ErrorCode.KAFKA_STORAGE_ERROR)
            return await obey(request, version)

        brokers[2].handle = refuse  # type: ignore[method-assign]
        response = await serve(cluster.controller.plane, delete_request("t", timeout_ms=20_000), 6)
        assert [r.error_code for r in response.responses] == [0]
        assert refused == 5
        assert cluster.tree.exists(topic_path("t")) is None
        await cluster.stop()

    run(body())


def test_nobody_waits_for_a_deletion_by_a_controller_that_resigned():
    """Its successor goes on with it: the answer says so at once, instead of holding a connection until the timeout."""

    async def body():
        cluster = Cluster()
        await cluster.start(1, 2, 3)
        await create(cluster, [("t", 1, 3)])
        await cluster.brokers[3].crash()
        await cluster.until(lambda: len(cluster.controller.cache.alive_brokers()) == 2)
        controller = cluster.controller.plane
        deleting = asyncio.ensure_future(serve(controller, delete_request("t", timeout_ms=60_000), 6))
        await cluster.until(lambda: cluster.tree.children("/admin/delete_topics") == ["t"])
        await asyncio.sleep(0.1)
        assert not deleting.done()
        began_s = asyncio.get_running_loop().time()
        controller._candidate.resign("a test")
        response = await deleting
        assert asyncio.get_running_loop().time() == began_s
        assert [r.error_code for r in response.responses] == [ErrorCode.REQUEST_TIMED_OUT]
        await cluster.stop()

    run(body())


def test_deletion_can_be_switched_off():
    """73, or 42 for clients that do not know 73."""

    async def body():
        cluster = Cluster()
        await cluster.start(1, delete_topic_enable=False)
        await create(cluster, [("t", 1, 1)])
        plane = cluster.controller.plane
        [result] = (await serve(plane, delete_request("t"), 6)).responses
        assert result.error_code == ErrorCode.TOPIC_DELETION_DISABLED
        [result] = (await serve(plane, delete_request("t"), 2)).responses
        assert result.error_code == ErrorCode.INVALID_REQUEST
        await cluster.stop()

    run(body())
