"""What brokers ask of the controller: ISR changes, producer ids, leave to go."""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import replace

import pytest

from cluster.broker.control.controller import controlled_shutdown
from cluster.broker.control.controller.controlled_shutdown import LEADERS_MS, METADATA_MS, Departure
from cluster.broker.control.controller.epoch_fence import NotController
from cluster.broker.control.links.controller_client import ControllerUnavailable
from cluster.broker.control.links.producer_ids import CoordinatorLoading, NoProducerIds
from cluster.controller.producer_ids import ProducerIdsExhausted
from cluster.controller.rules import ControlRules
from cluster.metadata.paths import PRODUCER_ID_BLOCK
from cluster.metadata.store import SetData
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from tests.cluster.broker.control.cluster import Cluster, IsrChange, ask, isr_change
from tests.support.virtual_time import run


def change_of(cluster: Cluster, isr: tuple[int, ...], broker_epochs: dict[int, int] | None = None) -> IsrChange:
    """What the leader of t-0 would ask, going by the state node."""
    state = cluster.state()
    assert state is not None
    topic = cluster.controller.cache.topic("t")
    assert topic is not None
    return isr_change(topic.topic_id, 0, state, isr, broker_epochs or {})


async def with_topic(**options) -> tuple[Cluster, list]:
    """Three brokers, controller 1, t-0 led by 2 with 1 and 3 in the ISR."""
    cluster = Cluster()
    brokers = await cluster.start(1, 2, 3, **options)
    await cluster.create_topic("t", assignments={0: [2, 1, 3]}, partitions=-1, factor=-1)
    return cluster, brokers


def test_a_leader_shrinks_and_expands_its_isr_over_the_link():
    """The state node moves on by one version each; all brokers hear; the leader epoch stays."""

    async def body():
        cluster, brokers = await with_topic()
        [answer] = await ask(brokers[1].plane, change_of(cluster, (2, 1)))
        assert (answer.error_code, answer.isr, answer.partition_epoch) == (ErrorCode.NONE, (2, 1), 1)
        assert (answer.leader_id, answer.leader_epoch) == (2, 0)
        assert (cluster.state()["isr"], cluster.state()["version"]) == ([2, 1], 1)
        for broker in brokers:
            await cluster.until(lambda broker=broker: broker.cache.partition("t", 0).isr == (2, 1))
            assert broker.cache.partition("t", 0).partition_epoch == 1
        epochs = {3: brokers[2].plane.broker_epoch}
        [answer] = await ask(brokers[1].plane, change_of(cluster, (2, 1, 3), broker_epochs=epochs))
        assert (answer.error_code, answer.isr, answer.partition_epoch) == (ErrorCode.NONE, (2, 1, 3), 2)
        await cluster.stop()

    run(body())


def test_a_leader_on_the_controller_s_own_broker_asks_in_process():
    """No link is needed; the answer is the same."""

    async def body():
        cluster = Cluster()
        [broker] = await cluster.start(1)
        await cluster.start(2)
        await cluster.create_topic("t", assignments={0: [1, 2]}, partitions=-1, factor=-1)
        [answer] = await ask(broker.plane, change_of(cluster, (1,)))
        assert (answer.error_code, answer.isr) == (ErrorCode.NONE, (1,))
        await cluster.stop()

    run(body())


def test_a_fenced_leader_is_told_so_for_that_partition_alone():
    """74 and 95 are per partition; the other change of the same request goes through."""

    async def body():
        cluster, brokers = await with_topic()
        await cluster.create_topic("u", assignments={0: [2, 1, 3]}, partitions=-1, factor=-1)
        good = change_of(cluster, (2, 1))
        other_id = cluster.controller.cache.topic("u").topic_id
        fenced = ((other_id, 0), replace(good[1], leader_epoch=-1))
        answers = await ask(brokers[1].plane, good, fenced)
        assert [answer.error_code for answer in answers] == [ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH]
        await cluster.stop()

    run(body())


def test_a_broker_of_a_former_life_cannot_join_by_a_delayed_proposal():
    """KIP-903, through all layers: the leader saw 3 in its former life, 3 came back meanwhile."""

    async def body():
        cluster, brokers = await with_topic()
        former = brokers[2].plane.broker_epoch
        await brokers[2].crash()
        await cluster.until(lambda: cluster.state()["isr"] == [2, 1])
        await cluster.start(3)
        await cluster.until(lambda: len(cluster.controller.cache.alive_brokers()) == 3)
        delayed = change_of(cluster, (2, 1, 3), broker_epochs={3: former})
        [answer] = await ask(brokers[1].plane, delayed)
        assert answer.error_code is ErrorCode.INELIGIBLE_REPLICA
        assert cluster.state()["isr"] == [2, 1]
        await cluster.stop()

    run(body())


def test_without_a_controller_a_proposal_raises_and_after_the_election_it_goes_through():
    """The caller retries; nothing is remembered here."""

    async def body():
        cluster, brokers = await with_topic()
        leader = brokers[1].plane
        change = change_of(cluster, (2,))
        await brokers[0].crash()
        refusals = 0
        while True:
            try:
                [answer] = await ask(leader, change)
                break
            except OSError:
                refusals += 1
                await asyncio.sleep(0.05)
        assert refusals > 10
        # The new controller took the dead broker out of the ISR in the meantime, under a new leader epoch.
        assert answer.error_code is ErrorCode.FENCED_LEADER_EPOCH
        role = brokers[1].roles["t", 0]
        partition_id, proposal = change
        renewed = replace(proposal, leader_epoch=role.leader_epoch, partition_epoch=role.partition_epoch)
        [answer] = await ask(leader, (partition_id, renewed))
        assert (answer.error_code, cluster.state()["isr"]) == (ErrorCode.NONE, [2])
        await cluster.stop()

    run(body())


def test_a_broker_that_is_no_controller_says_so():
    """41 at the top, and the asking side turns it into "try again"."""

    async def body():
        cluster, brokers = await with_topic()
        brokers[2].plane._candidate.controller_id = 2
        with pytest.raises(ControllerUnavailable, match="NOT_CONTROLLER"):
            await ask(brokers[2].plane, change_of(cluster, (2, 1)))
        await cluster.stop()

    run(body())


def test_two_brokers_racing_for_producer_ids_never_share_one():
    """3,000 ids each, interleaved: all distinct; the node is Kafka's JSON and records the newest block."""

    async def body():
        cluster = Cluster()
        brokers = await cluster.start(1, 2)

        async def take(broker, count):
            taken = []
            while len(taken) < count:
                try:
                    taken.append(await broker.plane.next_producer_id())
                except CoordinatorLoading:
                    await asyncio.sleep(0.01)
            return taken

        first, second = await asyncio.gather(take(brokers[0], 3000), take(brokers[1], 3000))
        assert len({*first, *second}) == 6000
        for taken in (first, second):
            assert all(b - a == 1 for a, b in itertools.pairwise(taken) if b % 1000)
        node = json.loads(cluster.tree.get(PRODUCER_ID_BLOCK)[0])
        assert node["version"] == 1
        assert int(node["block_end"]) - int(node["block_start"]) == 999
        assert int(node["block_start"]) % 1000 == 0
        await cluster.stop()

    run(body())


def test_ids_are_prefetched_before_they_run_out():
    """With 90 % handed out the next block is on its way: no client waits at the boundary."""

    async def body():
        cluster = Cluster()
        [broker] = await cluster.start(1)
        with pytest.raises(CoordinatorLoading) as caught:
            await broker.plane.next_producer_id()
        assert caught.value.error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await cluster.until(lambda: broker.plane._producer_ids._supply.take() is not None)
        for _ in range(5000):
            await broker.plane.next_producer_id()
            await asyncio.sleep(0.001)
        await cluster.stop()

    run(body())


def test_ids_are_not_reused_by_a_new_controller_or_another_writer():
    """The node decides: a failover, or Kafka itself writing there, only leaves gaps."""

    async def body():
        cluster = Cluster()
        brokers = await cluster.start(1, 2)
        await cluster.until(lambda: brokers[1].plane._producer_ids._supply._ahead)
        first = await brokers[1].plane.next_producer_id()
        cluster.tree.multi(0, [KAFKA_TAKES])
        await brokers[0].crash()
        await cluster.until(lambda: brokers[1].plane.is_controller)
        taken = {first}
        for _ in range(1999):
            while True:
                try:
                    taken.add(await brokers[1].plane.next_producer_id())
                    break
                except CoordinatorLoading:
                    await asyncio.sleep(0.01)
        assert len(taken) == 2000
        assert not taken & set(range(50_000, 51_000))
        assert max(taken) >= 51_000
        await cluster.stop()

    run(body())


KAFKA_TAKES = SetData(PRODUCER_ID_BLOCK, b'{"version":1,"broker":9,"block_start":"50000","block_end":"50999"}')


def test_exhausted_producer_ids_are_an_error():
    """Never a wrap; the client is told, and it is told again until somebody mends it."""

    def none_left(latest):
        raise ProducerIdsExhausted("as if 2^63 were near")

    async def body():
        cluster = Cluster()
        [broker] = await cluster.start(1, rules=ControlRules(next_block=none_left))
        await cluster.until(lambda: broker.plane._producer_ids._exhausted)
        with pytest.raises(NoProducerIds):
            await broker.plane.next_producer_id()
        await cluster.stop()

    run(body())


def test_a_controlled_shutdown_moves_leadership_before_the_broker_goes():
    """The leader of t-0 leaves: another leads at once, not after a session timeout, and producers are never without."""

    async def body():
        cluster, brokers = await with_topic()
        began = asyncio.get_running_loop().time()
        await brokers[1].leave()
        took_s = asyncio.get_running_loop().time() - began
        assert took_s < 0.5
        state = cluster.state()
        assert (state["leader"], state["isr"]) == (1, [1, 3])
        assert brokers[1].stopped == {("t", 0)}
        await cluster.until(lambda: len(brokers[0].cache.alive_brokers()) == 2)
        assert cluster.state()["leader_epoch"] == 1
        await cluster.stop()

    run(body())


def written_down(brokers) -> list[tuple[int, ApiKey]]:
    """From now on: which broker was told what by a controller, in the order of all brokers."""
    told: list[tuple[int, ApiKey]] = []

    class Received(list):
        def __init__(self, broker_id: int) -> None:
            super().__init__()
            self.broker_id = broker_id

        def append(self, request) -> None:
            super().append(request)
            told.append((self.broker_id, ApiKey(request.API_KEY)))

    for broker in brokers:
        broker.received = Received(broker.broker_id)
    return told


@pytest.mark.parametrize("leader", [1, 2])
@pytest.mark.parametrize("leaving", [1, 2])
def test_a_departure_is_told_in_the_order_that_keeps_clients_waiting_least(leaving, leader):
    """Metadata everywhere; then the new leaders, while the leaver stops all it has and follows nobody; then its answer.
    So also if the leaver is the controller (1) itself, whose last words these are."""

    async def body():
        cluster = Cluster()
        brokers = await cluster.start(1, 2, 3)
        await cluster.create_topic("t", assignments={0: [leader, 3 - leader, 3]}, partitions=-1, factor=-1)
        told = written_down(brokers)
        assert await cluster.brokers[leaving].plane.controller.controlled_shutdown() == 0
        stayers = [broker_id for broker_id in (1, 2, 3) if broker_id != leaving]
        assert sorted(told[:3]) == [(broker_id, ApiKey.UPDATE_METADATA) for broker_id in (1, 2, 3)]
        assert sorted(told[3:]) == sorted(
            [(leaving, ApiKey.STOP_REPLICA), *((broker_id, ApiKey.LEADER_AND_ISR) for broker_id in stayers)]
        )
        state = cluster.state()
        assert (state["leader"], state["isr"]) == (3 - leaving if leader == leaving else leader, stayers)
        for broker in brokers:
            assert broker.cache.partition("t", 0).leader == state["leader"]
        await cluster.stop()

    run(body())


def test_a_departure_does_not_wait_for_a_broker_that_cannot_be_reached():
    """It is given a while to hear of it, and no more."""

    async def body():
        cluster, brokers = await with_topic(controller_socket_timeout_ms=5000)
        cluster.network.cut("node-1", "node-3")
        told = written_down(brokers)
        began = asyncio.get_running_loop().time()
        assert await brokers[1].plane.controller.controlled_shutdown() == 0
        took_ms = (asyncio.get_running_loop().time() - began) * 1000
        assert METADATA_MS + LEADERS_MS <= took_ms < METADATA_MS + LEADERS_MS + 100
        assert (1, ApiKey.LEADER_AND_ISR) in told
        assert (2, ApiKey.STOP_REPLICA) in told
        await cluster.stop()

    run(body())


def test_a_departure_ends_with_its_controller():
    """Between its two steps another epoch may begin, which knows nothing of anybody's leaving: ask again."""

    async def body():
        cluster, brokers = await with_topic()
        role = brokers[0].plane._candidate
        epoch = await role.serve(lambda office: asyncio.sleep(0, office.controller.epoch))
        departure = Departure(2, epoch - 1)
        with pytest.raises(NotController):
            await role.serve(lambda office: controlled_shutdown.carry_out(office.controller, departure))
        cluster.network.cut("node-1", "node-3")
        told = written_down(brokers)
        leaving = asyncio.get_running_loop().create_task(brokers[1].leave())
        await cluster.until(lambda: (2, ApiKey.UPDATE_METADATA) in told)
        role.resign("a test")
        role.look_again()
        async with asyncio.timeout(10):
            await leaving
        assert brokers[1].stopped == {("t", 0)}
        await cluster.stop()

    run(body())


def test_the_controller_itself_can_leave_in_order():
    """It moves its own leadership first; a successor is elected at once."""

    async def body():
        cluster = Cluster()
        brokers = await cluster.start(1, 2, 3)
        await cluster.create_topic("t", assignments={0: [1, 2, 3]}, partitions=-1, factor=-1)
        await brokers[0].leave()
        assert cluster.leader() == 2
        await cluster.until(lambda: brokers[1].plane.is_controller or brokers[2].plane.is_controller, within_s=1)
        await cluster.stop()

    run(body())


def test_all_brokers_may_leave_at_once():
    """The last one cannot move anything and does not wait forever; the partition's ISR keeps it."""

    async def body():
        cluster, brokers = await with_topic()
        async with asyncio.timeout(10):
            await asyncio.gather(*(broker.leave() for broker in brokers))
        state = cluster.state()
        assert len(state["isr"]) == 1
        await cluster.stop()

    run(body())
