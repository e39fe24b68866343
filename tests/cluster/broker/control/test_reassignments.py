"""Partitions on their way to other replicas: what is written, told and deleted, through failures of everybody."""

from __future__ import annotations

import asyncio
import json

import pytest

from cluster.controller.context import TopicPartition
from cluster.controller.invariants import validate_settled
from cluster.metadata.paths import topic_path
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import decode_response, encode_response, request_class
from tests.cluster.broker.control.cluster import Cluster, ask, isr_change, serve
from tests.support.virtual_time import run


def reassign(*moves: tuple[int, list[int] | None], topic: str = "t"):
    request = request_class(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
    return request(
        timeout_ms=1000,
        topics=[
            request.ReassignableTopic(
                name=topic,
                partitions=[
                    request.ReassignableTopic.ReassignablePartition(partition_index=number, replicas=replicas)
                    for number, replicas in moves
                ],
            )
        ],
    )


async def move(cluster: Cluster, *moves: tuple[int, list[int] | None], topic: str = "t") -> list[int]:
    """Ask the controller; the error codes of the partitions."""
    response = await serve(cluster.controller.plane, reassign(*moves, topic=topic), 0)
    _, read = decode_response(45, 0, encode_response(45, 0, 1, response))
    assert read.error_code == ErrorCode.NONE
    return [partition.error_code for entry in read.responses for partition in entry.partitions]


async def moving(cluster: Cluster, topics=None) -> dict[tuple[str, int], tuple[list[int], list[int], list[int]]]:
    """ListPartitionReassignments at the controller."""
    request = request_class(ApiKey.LIST_PARTITION_REASSIGNMENTS)
    asked = topics and [request.ListPartitionReassignmentsTopics(name=n, partition_indexes=p) for n, p in topics]
    response = await serve(cluster.controller.plane, request(timeout_ms=1000, topics=asked), 0)
    _, read = decode_response(46, 0, encode_response(46, 0, 1, response))
    return {
        (topic.name, p.partition_index): (p.replicas, p.adding_replicas, p.removing_replicas)
        for topic in read.topics
        for p in topic.partitions
    }


def node(cluster: Cluster, topic: str = "t"):
    return json.loads(cluster.tree.get(topic_path(topic))[0])


async def catch_up(cluster: Cluster, *isr: int, topic: str = "t", partition: int = 0) -> None:
    """The leader has seen these replicas catch up."""
    state = cluster.state(topic, partition)
    leader = cluster.brokers[state["leader"]]
    epochs = {broker_id: cluster.brokers[broker_id].plane.broker_epoch for broker_id in isr}
    topic_id = leader.cache.topic(topic).topic_id
    change = isr_change(topic_id, partition, state, isr, epochs)
    [answer] = await ask(leader.plane, change)
    assert answer.error_code is ErrorCode.NONE


async def five(partitions: dict[int, list[int]] | None = None) -> Cluster:
    """Brokers 1 to 5, controller 1."""
    cluster = Cluster()
    await cluster.start(1, 2, 3, 4, 5, auto_leader_rebalance_enable=False)
    await cluster.create_topic("t", assignments=partitions or {0: [2, 3]}, partitions=-1, factor=-1)
    return cluster


def settled(cluster: Cluster, replicas: list[int]) -> bool:
    """The topic's node knows of nothing but these replicas of t-0."""
    found = node(cluster)
    return (found["partitions"]["0"], found["adding_replicas"], found["removing_replicas"]) == (replicas, {}, {})


def test_a_move_from_beginning_to_end():
    """Adding first, then another leader and the removal; the topic's node as Kafka writes it at each stage."""

    async def body():
        cluster = await five()
        assert await move(cluster, (0, [4, 5])) == [ErrorCode.NONE]
        found = node(cluster)
        assert found["partitions"] == {"0": [4, 5, 2, 3]}
        assert found["adding_replicas"] == {"0": [4, 5]}
        assert found["removing_replicas"] == {"0": [2, 3]}
        assert (cluster.state()["leader"], cluster.state()["leader_epoch"], cluster.state()["isr"]) == (2, 1, [2, 3])
        assert await moving(cluster) == {("t", 0): ([4, 5, 2, 3], [4, 5], [2, 3])}
        for broker_id in (2, 3, 4, 5):
            broker = cluster.brokers[broker_id]
            role = await cluster.until(lambda b=broker: (r := b.roles.get(("t", 0))) and r.leader_epoch == 1 and r)
            assert (role.replicas, role.adding_replicas, role.removing_replicas) == ([4, 5, 2, 3], [4, 5], [2, 3])
            assert role.is_new is (broker_id > 3)
        await catch_up(cluster, 2, 3, 4)
        assert await moving(cluster) != {}
        await catch_up(cluster, 2, 3, 4, 5)
        await cluster.until(lambda: settled(cluster, [4, 5]))
        assert (cluster.state()["leader"], cluster.state()["leader_epoch"], cluster.state()["isr"]) == (4, 2, [4, 5])
        assert await moving(cluster) == {}
        for broker_id in (2, 3):
            assert ("t", 0) not in cluster.brokers[broker_id].roles
            assert ("t", 0) in cluster.brokers[broker_id].stopped
        for broker_id in (4, 5):
            role = cluster.brokers[broker_id].roles["t", 0]
            assert (role.leader, role.replicas, role.adding_replicas) == (4, [4, 5], [])
        assert all(b.cache.partition("t", 0).replicas == (4, 5) for b in cluster.brokers.values())
        await cluster.stop()

    run(body())


def test_a_leader_that_stays_keeps_leading():
    """Only replicas move; fewer replicas or another order are done at once."""

    async def body():
        cluster = await five()
        await move(cluster, (0, [2, 4]))
        await catch_up(cluster, 2, 3, 4)
        await cluster.until(lambda: settled(cluster, [2, 4]))
        assert (cluster.state()["leader"], cluster.state()["isr"]) == (2, [2, 4])
        assert await move(cluster, (0, [4, 2])) == [ErrorCode.NONE]
        assert settled(cluster, [4, 2])
        assert await move(cluster, (0, [2])) == [ErrorCode.NONE]
        await cluster.until(lambda: settled(cluster, [2]))
        assert (cluster.state()["leader"], cluster.state()["isr"]) == (2, [2])
        await cluster.stop()

    run(body())


def test_a_move_gives_the_lead_to_no_one_who_cannot_host_the_partition():
    """The last member of the ISR is alive, but its disk has failed: the partition waits for it without a leader."""

    async def body():
        cluster = await five()
        await catch_up(cluster, 2)
        controller = cluster.controller.plane._candidate._office.controller
        controller.context.brokers[2].offline.add(TopicPartition("t", 0))
        await controller.settle_and_tell([TopicPartition("t", 0)])
        assert (cluster.state()["leader"], cluster.state()["isr"]) == (-1, [2])
        assert await move(cluster, (0, [2, 4])) == [ErrorCode.NONE]
        assert (cluster.state()["leader"], cluster.state()["leader_epoch"], cluster.state()["isr"]) == (-1, 2, [2])
        validate_settled(controller.context)
        await cluster.stop()

    run(body())


def test_a_cancelled_move_is_as_if_it_had_never_begun():
    """Whoever was added goes (the order is the one on the way, as in Kafka); a second one has nothing to cancel."""

    async def body():
        cluster = await five()
        await move(cluster, (0, [4, 3]))
        await catch_up(cluster, 2, 4)
        assert await move(cluster, (0, None)) == [ErrorCode.NONE]
        await cluster.until(lambda: settled(cluster, [3, 2]))
        assert (cluster.state()["leader"], cluster.state()["isr"]) == (2, [2])
        await cluster.until(lambda: ("t", 0) not in cluster.brokers[4].roles)
        assert await move(cluster, (0, None)) == [ErrorCode.NO_REASSIGNMENT_IN_PROGRESS]
        await cluster.stop()

    run(body())


def test_a_new_move_takes_the_place_of_a_running_one():
    """It starts from where the first one did; who is not wanted any more stops at once."""

    async def body():
        cluster = await five()
        await move(cluster, (0, [4, 3]))
        await cluster.until(lambda: ("t", 0) in cluster.brokers[4].roles)
        await move(cluster, (0, [5, 3]))
        assert node(cluster)["adding_replicas"] == {"0": [5]}
        assert node(cluster)["removing_replicas"] == {"0": [2]}
        await cluster.until(lambda: ("t", 0) not in cluster.brokers[4].roles)
        await catch_up(cluster, 2, 3, 5)
        await cluster.until(lambda: settled(cluster, [5, 3]))
        assert cluster.leader() == 5
        await cluster.stop()

    run(body())


@pytest.mark.parametrize("at", ["begun", "in sync", "deleting"])
def test_a_move_survives_its_controller(at):
    """The next controller goes on from the topic's node, whichever step the first one had come to."""

    async def body():
        cluster = await five()
        await move(cluster, (0, [4, 5]))
        if at == "in sync":
            # Written for the former controller's eyes only: it dies before it acts.
            await catch_up(cluster, 2, 3, 4)
        if at == "deleting":
            for broker_id in (2, 3):
                cluster.network.cut("node-1", f"node-{broker_id}")
            await catch_up_past_cut(cluster)
            assert cluster.state()["isr"] == [4, 5]
            assert node(cluster)["removing_replicas"] == {"0": [2, 3]}
        await cluster.brokers[1].crash()
        await cluster.until(lambda: any(b.plane.is_controller for n, b in cluster.brokers.items() if n != 1))
        if at != "deleting":
            epoch = 1
            await cluster.until(lambda: cluster.state()["leader_epoch"] > epoch)
            await cluster.until(lambda: cluster.brokers[2].roles["t", 0].leader_epoch > epoch)
            assert await moving(cluster) == {("t", 0): ([4, 5, 2, 3], [4, 5], [2, 3])}
            await catch_up(cluster, 2, 3, 4, 5)
        await cluster.until(lambda: settled(cluster, [4, 5]))
        await cluster.until(lambda: all(("t", 0) not in cluster.brokers[n].roles for n in (2, 3)))
        assert (cluster.leader(), cluster.state()["isr"]) == (4, [4, 5])
        await cluster.stop()

    run(body())


async def catch_up_past_cut(cluster: Cluster) -> None:
    """The leader's proposal reaches the controller in process: its link is cut."""
    state = cluster.state()
    request = request_class(ApiKey.ALTER_PARTITION)
    data = request.TopicData.PartitionData
    leader = cluster.brokers[2]
    response = await serve(
        cluster.controller.plane,
        request(
            broker_id=2,
            broker_epoch=leader.plane.broker_epoch,
            topics=[
                request.TopicData(
                    topic_id=leader.cache.topic("t").topic_id,
                    partitions=[
                        data(
                            partition_index=0,
                            leader_epoch=state["leader_epoch"],
                            partition_epoch=state["version"],
                            new_isr_with_epochs=[data.BrokerState(broker_id=n, broker_epoch=-1) for n in (2, 3, 4, 5)],
                        )
                    ],
                )
            ],
        ),
        3,
    )
    assert response.error_code == ErrorCode.NONE


def test_a_target_that_dies_holds_the_move_up_and_no_more():
    """It goes on when that broker is back; meanwhile the partition is led and can be moved elsewhere."""

    async def body():
        cluster = await five()
        await move(cluster, (0, [4]))
        await cluster.until(lambda: ("t", 0) in cluster.brokers[4].roles)
        await cluster.brokers[4].crash()
        await cluster.until(lambda: len(cluster.controller.cache.alive_brokers()) == 4)
        assert await move(cluster, (0, [4])) == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]
        assert cluster.leader() == 2
        assert await moving(cluster) != {}
        await cluster.start(4)
        await cluster.until(lambda: ("t", 0) in cluster.brokers[4].roles)
        await catch_up(cluster, 2, 3, 4)
        await cluster.until(lambda: settled(cluster, [4]))
        await cluster.stop()

    run(body())


def test_each_partition_has_its_own_answer():
    """Unknown ones, bad ones and good ones in one request; a list may name what is wanted."""

    async def body():
        cluster = await five({0: [2, 3], 1: [3, 2]})
        assert await move(cluster, (0, [4]), (1, [9]), (7, [1])) == [
            ErrorCode.NONE,
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert await move(cluster, (0, [1]), topic="nowhere") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert set(await moving(cluster, [("t", [1])])) == set()
        assert set(await moving(cluster, [("t", [0, 1])])) == {("t", 0)}
        refused = await serve(cluster.brokers[2].plane, reassign((0, [1])), 0)
        assert refused.error_code == ErrorCode.NOT_CONTROLLER
        await cluster.stop()

    run(body())


def test_a_moving_topic_can_be_deleted():
    """All replicas, old and new, delete their data."""

    async def body():
        cluster = await five()
        await move(cluster, (0, [4, 5]))
        request = request_class(ApiKey.DELETE_TOPICS)(topic_names=["t"], topics=[], timeout_ms=5000)
        [result] = (await serve(cluster.controller.plane, request, 5)).responses
        assert result.error_code == ErrorCode.NONE
        assert cluster.tree.exists(topic_path("t")) is None
        assert all(("t", 0) not in broker.roles for broker in cluster.brokers.values())
        assert await moving(cluster) == {}
        await asyncio.sleep(1)
        await cluster.stop()

    run(body())
