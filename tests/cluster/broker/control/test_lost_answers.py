"""A lost answer or request at every single call to the store: the outcome must be as if nothing had been lost.

Each case loses one call, the n-th of the first controller, in one of the two ways.
"""

from __future__ import annotations

import asyncio
import json

import pytest

from cluster.broker.control.links.producer_ids import CoordinatorLoading
from cluster.metadata.memory import MemoryStore
from cluster.metadata.paths import CONTROLLER, CONTROLLER_EPOCH, PRODUCER_ID_BLOCK
from tests.cluster.broker.control import cluster as harness
from tests.cluster.broker.control.cluster import Cluster
from tests.support.virtual_time import run


class LossyStore(MemoryStore):
    """Loses one call."""

    lost_call = -1
    way = "answer"
    calls = 0

    async def _call(self, operation, writes=()):
        self.calls += 1
        if self.calls == self.lost_call:
            if self.way == "answer":
                self.lose_next_answer()
            else:
                self.lose_next_request()
        return await super()._call(operation, writes)


async def story(store_of_controller: type[MemoryStore], monkeypatch) -> int:
    """Start, create, shrink by death, hand out ids, restart. Returns the calls that broker 1's store has seen."""
    cluster = Cluster()
    with monkeypatch.context() as patch:
        patch.setattr(harness, "MemoryStore", store_of_controller)
        [first] = await cluster.start(1)
    await cluster.start(2, 3)
    await cluster.create_topic("t", assignments={0: [3, 1, 2], 1: [1, 2, 3]}, partitions=-1, factor=-1)
    await cluster.brokers[3].crash()
    await cluster.until(lambda: cluster.leader("t", 0) == 1)
    ids = {await an_id(broker) for _ in range(950) for broker in (first, cluster.brokers[2])}
    assert len(ids) == 1900
    await cluster.start(3)
    await cluster.until(lambda: len(cluster.brokers[3].cache.alive_brokers()) == 3)

    assert [broker.plane.is_controller for broker in cluster.brokers.values()].count(True) == 1
    owner = json.loads(cluster.tree.get(CONTROLLER)[0])["brokerid"]
    assert owner == cluster.controller.broker_id
    epoch = int(cluster.tree.get(CONTROLLER_EPOCH)[0])
    assert epoch == cluster.controller.plane._candidate._office.controller.epoch
    for partition, isr in ((0, [1, 2]), (1, [1, 2])):
        state = cluster.state("t", partition)
        assert state["isr"] == isr
        assert state["leader"] == 1
        # Each write raised exactly one version, and each election or shrink one leader epoch.
        assert (state["leader_epoch"], state["version"]) == (1, 1)
    for broker in (first, cluster.brokers[2]):
        await cluster.until(lambda broker=broker: broker.roles["t", 0].leader_epoch == 1)
    assert int(json.loads(cluster.tree.get(PRODUCER_ID_BLOCK)[0])["block_end"]) % 1000 == 999
    calls = first.store.calls
    await cluster.stop()
    return calls


async def an_id(broker) -> int:
    while True:
        try:
            return await broker.plane.next_producer_id()
        except CoordinatorLoading:
            await asyncio.sleep(0.05)


def lose_every(step: int, way: str, monkeypatch) -> None:
    total = run(story(LossyStore, monkeypatch))
    assert total > 50
    for n in range(1, total + 1, step):
        lossy = type("Lossy", (LossyStore,), {"lost_call": n, "way": way})
        run(story(lossy, monkeypatch))


@pytest.mark.parametrize("way", ["answer", "request"])
def test_one_lost_call_changes_nothing(way, monkeypatch):
    """Elections, registrations, state writes, block writes: all are read back before they are tried again."""
    lose_every(5, way, monkeypatch)


@pytest.mark.full
@pytest.mark.parametrize("way", ["answer", "request"])
def test_one_lost_call_anywhere_changes_nothing(way, monkeypatch):
    """Whichever call to ZooKeeper is lost, the outcome is the same."""
    lose_every(1, way, monkeypatch)
