"""Control planes on a real ZooKeeper and real sockets: elections, expiry, a silent link, racing producer ids."""

from __future__ import annotations

import asyncio
import itertools
import json

import pytest

from cluster.broker.control.links.producer_ids import CoordinatorLoading
from cluster.metadata.paths import CONTROLLER_EPOCH, PRODUCER_ID_BLOCK, broker_path, state_path
from cluster.metadata.zookeeper import ZooKeeperStore
from cluster.protocol.errors import ErrorCode
from cluster.seams.asyncio_transport import AsyncioTransport
from tests.cluster.broker.control.cluster import Cluster, ask, isr_change
from tests.cluster.metadata.harness import Forwarder, ZooKeeperHarness

pytestmark = pytest.mark.integration

SESSION_MS = 1000
_roots = itertools.count()


class RealCluster(Cluster):
    """Each test in a chroot of its own; each broker's link to ZooKeeper goes through a forwarder."""

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__()
        self._address = address
        self._root = f"/control{next(_roots)}"
        self.links: dict[int, Forwarder] = {}
        self.observer = ZooKeeperStore("{}:{}".format(*address), 10_000)
        self._thief = ZooKeeperHarness(address, self._root)

    async def begin(self) -> None:
        await self.observer.start(20_000)
        await self.observer.create(self._root)

    async def link(self, broker_id: int) -> None:
        self.links[broker_id] = Forwarder(self._address)
        await self.links[broker_id].up()

    def store_for(self, broker_id: int) -> ZooKeeperStore:
        return ZooKeeperStore(f"127.0.0.1:{self.links[broker_id].port}{self._root}", SESSION_MS)

    def transport_for(self, node: str) -> AsyncioTransport:
        return AsyncioTransport()

    async def expire(self, broker_id: int) -> None:
        await self._thief.expire(self.brokers[broker_id].store)

    async def read(self, path: str):
        data, stat = await self.observer.get(self._root + path)
        return data, stat

    async def read_state(self, topic: str, partition: int):
        data, stat = await self.read(state_path(topic, partition))
        return {**json.loads(data), "version": stat.version}

    async def end(self) -> None:
        await self.stop()
        for broker in self.brokers.values():
            await broker._listener.close()
        for link in self.links.values():
            await link.down()
        await self.observer.close()


def run(address, test) -> None:
    async def body():
        cluster = RealCluster(address)
        await cluster.begin()
        for broker_id in (1, 2, 3):
            await cluster.link(broker_id)
        try:
            await test(cluster)
        finally:
            await cluster.end()

    asyncio.run(body())


def test_election_death_and_return(zookeeper):
    """The controller's session is closed by somebody else: a successor, its partitions moved, a new broker epoch."""

    async def test(cluster):
        brokers = await cluster.start(1, 2, 3)
        # A broker is registered before the controller has heard of it.
        await cluster.until(lambda: len(brokers[0].cache.alive_brokers()) == 3)
        await cluster.create_topic("t", assignments={0: [1, 2, 3]}, partitions=-1, factor=-1)
        former = brokers[0].plane.broker_epoch
        assert (await cluster.read(broker_path(1)))[1].created_zxid == former
        await cluster.expire(1)
        await cluster.until(lambda: brokers[0].plane.broker_epoch > former)
        await cluster.until(
            lambda: (
                [b.plane.is_controller for b in brokers].count(True) == 1
                and {b.plane.controller_id for b in brokers} == {cluster.controller.broker_id}
            )
        )
        await cluster.until(lambda: all(b.roles["t", 0].leader_epoch >= 1 for b in brokers))
        await cluster.until(lambda: all(len(b.cache.alive_brokers()) == 3 for b in brokers))
        state = await cluster.read_state("t", 0)
        assert state["leader"] == 2
        assert 1 not in state["isr"]
        assert int((await cluster.read(CONTROLLER_EPOCH))[0]) >= 2
        leader = brokers[1]
        topic_id = leader.cache.topic("t").topic_id
        change = isr_change(topic_id, 0, state, (2, 3, 1), {1: brokers[0].plane.broker_epoch})
        [answer] = await ask(leader.plane, change)
        assert (answer.error_code, answer.isr) == (ErrorCode.NONE, (2, 3, 1))

    run(zookeeper, test)


def test_a_silent_link_costs_the_session_and_the_leadership(zookeeper):
    """Nothing comes through any more, no error either: the leader is replaced, and comes back as a follower."""

    async def test(cluster):
        brokers = await cluster.start(1, 2, 3)
        await cluster.until(lambda: len(brokers[0].cache.alive_brokers()) == 3)
        await cluster.create_topic("t", assignments={0: [3, 2, 1]}, partitions=-1, factor=-1)
        former = brokers[2].plane.broker_epoch
        began = asyncio.get_running_loop().time()
        cluster.links[3].swallows = True
        await cluster.until(lambda: brokers[1].roles["t", 0].leader == 2)
        assert asyncio.get_running_loop().time() - began >= SESSION_MS / 1000 * 0.5
        cluster.links[3].swallows = False
        await cluster.until(lambda: brokers[2].plane.broker_epoch > former)
        await cluster.until(lambda: brokers[2].roles["t", 0].leader == 2)
        assert brokers[0].plane.is_controller

    run(zookeeper, test)


def test_a_restart_of_the_same_broker_waits_for_its_former_session(zookeeper):
    """kill -9 and start again at once."""

    async def test(cluster):
        brokers = await cluster.start(1, 2)
        former = brokers[1].plane.broker_epoch
        session = brokers[1].store.session_id
        await cluster.links[2].down()
        await brokers[1].plane.stop(controlled=False)
        await brokers[1]._listener.close()
        await cluster.link(2)
        assert (await cluster.read(broker_path(2)))[1].ephemeral_owner == session
        [back] = await cluster.start(2)
        assert back.plane.broker_epoch > former
        await cluster.until(lambda: len(back.cache.alive_brokers()) == 2)

    run(zookeeper, test)


def test_two_brokers_race_for_producer_ids(zookeeper):
    """Distinct ids over several blocks each, and Kafka's JSON in the node."""

    async def test(cluster):
        brokers = await cluster.start(1, 2)

        async def take(plane):
            taken = []
            while len(taken) < 2500:
                try:
                    taken.append(await plane.next_producer_id())
                except CoordinatorLoading:
                    await asyncio.sleep(0.005)
            return taken

        taken = await asyncio.gather(*(take(broker.plane) for broker in brokers))
        assert len({*taken[0], *taken[1]}) == 5000
        node = json.loads((await cluster.read(PRODUCER_ID_BLOCK))[0])
        assert set(node) == {"version", "broker", "block_start", "block_end"}
        assert int(node["block_end"]) == int(node["block_start"]) + 999

    run(zookeeper, test)
