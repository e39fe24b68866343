"""What administrators ask for, however much, does not stand before an election (M2)."""

from __future__ import annotations

import asyncio

import pytest

from cluster.broker.internal_topics import TopicPlan
from cluster.broker.topic_creation import MOST_ASKED_FOR, TopicCreator
from cluster.controller.topics import TopicRequest
from cluster.metadata.paths import CONFIG_CHANGE_PREFIX, config_path
from cluster.metadata.store import Create, SetData
from cluster.metadata.znodes import encode_config, encode_config_change
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.cluster.broker.control.cluster import SESSION_MS, Cluster, create_topics_request, serve
from tests.support.virtual_time import run

TOPICS = 100
#: Of one look at ZooKeeper, or one write to it.
LATENCY_S = 0.02


@pytest.mark.parametrize("what", ["create", "delete", "reassign"])
def test_a_leader_is_replaced_while_much_is_administered(what: str) -> None:
    """Topics are made, deleted, moved: within the session's end and a second, where it waited for all of them; every
    topic is done in the end."""

    async def main() -> None:
        cluster = Cluster(LATENCY_S)
        await cluster.start(1, 2, 3)
        await cluster.create_topic("t", assignments={0: [2, 3, 1]}, partitions=-1, factor=-1)
        request = create_topics_request([(f"many-{number}", 1, 1) for number in range(TOPICS)], timeout_ms=60_000)
        if what == "delete":
            await serve(cluster.controller.plane, request, 7)
            names = [f"many-{number}" for number in range(TOPICS)]
            request = request_class(ApiKey.DELETE_TOPICS)(version=5, topic_names=names, topics=[], timeout_ms=60_000)
        loop = asyncio.get_running_loop()
        if what == "reassign":
            await serve(cluster.controller.plane, request, 7)
            request = request_class(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
            topic_class = request.ReassignableTopic
            moved = [topic_class.ReassignablePartition(partition_index=0, replicas=[1, 3])]
            topics = [topic_class(name=f"many-{number}", partitions=moved) for number in range(TOPICS)]
            request = request(topics=topics, timeout_ms=60_000)
        version = {"create": 7, "delete": 5, "reassign": 0}[what]
        before = loop.time()
        await cluster.brokers[2].crash()
        await asyncio.sleep(SESSION_MS / 1000 - 0.1)
        working = loop.create_task(serve(cluster.controller.plane, request, version))
        await cluster.until(lambda: cluster.leader() == 3)
        assert loop.time() - before < SESSION_MS / 1000 + 1
        assert not working.done()
        if what == "create":
            answer = await working
            assert [topic.error_code for topic in answer.topics] == [ErrorCode.NONE] * TOPICS
        elif what == "reassign":
            answer = await working
            codes = [each.error_code for topic in answer.responses for each in topic.partitions]
            assert codes == [ErrorCode.NONE] * TOPICS
        else:
            working.cancel()
        await cluster.stop()

    run(main())


def test_a_leader_is_replaced_while_configurations_change() -> None:
    """Hundreds of topics get another retention: the same, and every broker knows each of them in the end."""

    async def main() -> None:
        cluster = Cluster(LATENCY_S)
        await cluster.start(1, 2, 3)
        await cluster.create_topic("t", assignments={0: [2, 3, 1]}, partitions=-1, factor=-1)
        names = [f"many-{number}" for number in range(4 * TOPICS)]
        request = create_topics_request([(name, 1, 1) for name in names], timeout_ms=60_000)
        await serve(cluster.controller.plane, request, 7)
        loop = asyncio.get_running_loop()
        before = loop.time()
        await cluster.brokers[2].crash()
        await asyncio.sleep(SESSION_MS / 1000 - 0.3)
        cache = cluster.controller.cache
        known = [name for name in names if cache.has_topic_config(name)]
        assert len(known) > TOPICS
        writer = cluster.controller.store.session_id
        for name in names:
            path = config_path("topics", name)
            write = (SetData if cluster.tree.exists(path) else Create)(path, encode_config({"retention.ms": "60000"}))
            cluster.tree.multi(writer, [write])
            cluster.tree.create(
                writer, Create(CONFIG_CHANGE_PREFIX, encode_config_change("topics", name)), sequence=True
            )
        await cluster.until(lambda: cluster.leader() == 3)
        assert loop.time() - before < SESSION_MS / 1000 + 1
        await cluster.until(
            lambda: all(cache.topic_config(name) == {"retention.ms": "60000"} for name in known), within_s=120
        )
        await cluster.stop()

    run(main())


def test_topics_that_are_only_asked_for_are_few_at_a_time() -> None:
    """A Metadata request of unknown names makes no request to the controller for each."""

    async def main() -> None:
        asked: list[str] = []

        async def make(topic: TopicRequest, _timeout_ms: int) -> None:
            asked.append(topic.name)
            await asyncio.sleep(1)

        creator = TopicCreator(make, lambda _name: TopicPlan(), 1000)
        for number in range(10 * MOST_ASKED_FOR):
            creator.create(f"t{number}")
        await asyncio.sleep(2)
        assert len(asked) == MOST_ASKED_FOR
        creator.create("another")
        await asyncio.sleep(2)
        assert asked[-1] == "another"

    run(main())


@pytest.mark.parametrize("what", ["partitions", "deletion"])
def test_a_leader_is_replaced_while_one_thing_is_large(what: str) -> None:
    """One topic of thousands of partitions is made or deleted: the same."""

    async def main() -> None:
        cluster = Cluster(LATENCY_S)
        await cluster.start(1, 2, 3)
        await cluster.create_topic("t", assignments={0: [2, 3, 1]}, partitions=-1, factor=-1)
        placed = {number: [1, 3] for number in range(10_000 if what == "partitions" else 5_000)}
        large = create_topics_request([("large", -1, -1)], assignments=placed, timeout_ms=60_000)
        if what == "deletion":
            await serve(cluster.controller.plane, large, 7)
        plane, loop = cluster.controller.plane, asyncio.get_running_loop()
        if what == "deletion":
            request = request_class(ApiKey.DELETE_TOPICS)(topic_names=["large"], topics=[], timeout_ms=60_000)
            working = loop.create_task(serve(plane, request, 5))
            await asyncio.sleep(0.3)
        before = loop.time()
        await cluster.brokers[2].crash()
        await asyncio.sleep(SESSION_MS / 1000 - 0.4)
        if what == "partitions":
            working = loop.create_task(serve(plane, large, 7))
        await cluster.until(lambda: cluster.leader() == 3)
        assert loop.time() - before < SESSION_MS / 1000 + 1
        answer = await working
        if what == "partitions":
            assert answer.topics[0].error_code == ErrorCode.NONE
            assert all(cluster.leader("large", number) in (1, 3) for number in placed)
        else:
            assert answer.responses[0].error_code == ErrorCode.NONE
            assert cluster.state("large", 0) is None
        await cluster.stop()

    run(main())
