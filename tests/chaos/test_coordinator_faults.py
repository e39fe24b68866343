"""Faults on coordinators, on a cluster of numbers: whom they choose, at which step, and what they say without one."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from chaos.faults.base import Fault, PreconditionMissing
from chaos.faults.broker_links import links_of_clients, links_to_brokers
from chaos.faults.catalogue import FAULTS
from chaos.faults.damage import FrameAct, Marks
from chaos.faults.steps import STEPS
from chaos.schedules.model import Injection
from cluster.process.topology import link_names
from cluster.protocol.apis import ApiKey
from cluster.seams.clock import Clock, SystemClock
from tests.chaos.conducted import FastClock
from tests.chaos.fake_cluster import FakeCluster, FakeLinks
from tests.support.faults import of_coordinators

AT_STEPS = [name for name in of_coordinators() if name.startswith(("kill-", "pause-"))]


class WatchedLinks(FakeLinks):
    """Notes what is done to frames, and what was broken when each frame was let go."""

    def __init__(self, cluster: FakeCluster) -> None:
        super().__init__()
        self.cluster = cluster
        self.acts: list[tuple[str, FrameAct]] = []
        self.broken_at_heal: list[bool] = []
        #: API keys of which no frame comes by
        self.absent: set[int] = set()
        self._keys: dict[str, tuple[int, ...]] = {}

    async def act_on_frames(self, link: str, act: FrameAct) -> Marks:
        self.acts.append((link, act))
        self.without_frames = {link for link, each in self.acts if set(each.api_keys) <= self.absent}
        if not set(act.api_keys) <= self.absent:
            self.without_frames.discard(link)
        return await super().act_on_frames(link, act)

    async def heal(self, marks: Marks) -> None:
        processes = self.cluster.processes.values()
        self.broken_at_heal.append(any(not each.running or each.suspended for each in processes))
        await super().heal(marks)


class CountedClock(SystemClock):
    """Each look is 200 ms later, whatever the machine does: a wait has as many looks as it has time for."""

    def __init__(self) -> None:
        super().__init__()
        self._now_ms = 0

    def monotonic_ms(self) -> int:
        self._now_ms += 200
        return self._now_ms


def made(name: str, cluster: FakeCluster, seed: int = 1, *, clock: Clock | None = None, **said: Any) -> Fault:
    target, parameters = said.pop("target", {"partition": 1}), said
    return FAULTS[name](Injection(0.0, name, 0.01, target, parameters), cluster, clock or FastClock(), Random(seed))


def watched() -> tuple[FakeCluster, WatchedLinks]:
    cluster = FakeCluster()
    links = WatchedLinks(cluster)
    cluster.links = links
    return cluster, links


@pytest.mark.parametrize("name", of_coordinators())
def test_without_anything_to_coordinate_there_is_no_target(name: str) -> None:
    """The fault waits, and is skipped with that reason if none comes; so it does for a name that is not in use."""
    cluster = FakeCluster()
    cluster.coordinated_ids = 0
    with pytest.raises(PreconditionMissing, match=r"no (transactional id|group) is in use"):
        asyncio.run(made(name, cluster).choose())
    kind = FAULTS[name].needs_coordinator
    key = "group" if kind == "group" else "transactional_id"
    if name == "delay-markers":
        return  # of whatever id
    assert key in FAULTS[name].targets
    with pytest.raises(PreconditionMissing, match="other is not in use"):
        asyncio.run(made(name, FakeCluster(), target={key: "other"}).choose())
    assert f"{kind}-1" in asyncio.run(made(name, FakeCluster(), target={key: f"{kind}-1"}).choose())


@pytest.mark.parametrize("name", AT_STEPS)
def test_the_seed_draws_the_step_and_every_step_comes_up(name: str) -> None:
    """The same seed, the same step; a step that is named is the one."""
    kind = FAULTS[name].needs_coordinator
    assert kind is not None
    drawn = [asyncio.run(made(name, FakeCluster(), seed).choose()) for seed in range(40)]
    assert drawn == [asyncio.run(made(name, FakeCluster(), seed).choose()) for seed in range(40)]
    assert {target.rpartition(" at ")[2] for target in drawn} == set(STEPS[kind])
    for step in STEPS[kind]:
        assert asyncio.run(made(name, FakeCluster(), step=step).choose()).endswith(f", at {step}")


@pytest.mark.parametrize("name", AT_STEPS)
def test_a_broker_is_broken_while_the_frame_is_held(name: str) -> None:
    """One frame of each link, held before and let go after; a kill loses it, a pause does not."""

    async def scenario() -> None:
        for step in STEPS[FAULTS[name].needs_coordinator or "group"]:
            cluster, links = watched()
            fault = made(name, cluster, step=step)
            await fault.choose()
            await fault.inject()
            assert links.broken_at_heal and all(links.broken_at_heal)
            assert all(act.act == "hold" and act.count == 1 for _, act in links.acts)
            assert {act.lossy for _, act in links.acts} == {name.startswith("kill-")}
            seen = (await fault.bites()).seen
            assert (seen["step"], seen["coordinator_moved"]) == (step, True)
            await fault.heal()
            assert (await fault.gone()).effective

    asyncio.run(scenario())


def test_a_step_that_does_not_come_up_gives_way_to_another_unless_it_was_named() -> None:
    """A group without a rebalance has no JoinGroup; the record says at which step its coordinator was hit."""

    async def scenario(**said: str) -> tuple[Any, WatchedLinks, FakeCluster]:
        for seed in range(100):
            cluster, links = watched()
            links.absent = {11}
            fault = made("kill-group-coordinator", cluster, seed, **said)
            if (await fault.choose()).endswith("at join-group"):
                await fault.inject()
                return await fault.bites(), links, cluster
        raise AssertionError("no seed draws join-group")

    probe, links, _ = asyncio.run(scenario())
    assert probe.effective and probe.seen["step"] == "sync-group"
    assert [act.api_keys for _, act in links.acts] == [(11,), (11,), (14,), (14,)]
    probe, _, cluster = asyncio.run(scenario(step="join-group"))
    assert not probe.effective and probe.seen["came_by"] is False
    assert all(each.running for each in cluster.processes.values())
    assert "no such request or response came by" in FAULTS["kill-group-coordinator"].missed(probe.seen)


def test_a_step_is_waited_for_while_a_load_stands_still() -> None:
    """Each of them has its turn again and again, the one that was drawn too."""

    async def scenario() -> None:
        cluster, links = watched()
        keys = {int(key) for step in STEPS["transaction"].values() for key in step.api_keys}
        links.absent = set(keys)
        fault = made("pause-transaction-coordinator", cluster, clock=CountedClock())
        await fault.choose()
        injecting = asyncio.ensure_future(fault.inject())
        while len(links.acts) <= 2 * (len(STEPS["transaction"]) + 1):  # on two links each: the drawn one twice
            assert not injecting.done()
            await asyncio.sleep(0)
        links.absent = keys - {int(ApiKey.END_TXN)}
        await injecting
        assert str((await fault.bites()).seen["step"]).startswith("end-txn-")
        await fault.heal()

    asyncio.run(scenario())


def test_markers_are_held_on_the_way_to_a_broker_that_gets_some() -> None:
    """A coordinator sends no markers to a broker that leads none of the partitions: then it is another one's turn."""

    async def scenario(without: set[str]) -> tuple[bool, str]:
        cluster = FakeCluster()
        cluster.links.without_frames = without
        fault = made("hold-markers", cluster)
        await fault.choose()
        await fault.inject()
        probe = await fault.bites()
        left = [link for link, toxics in cluster.links.toxics.items() if toxics]
        await fault.heal()
        assert (await fault.gone()).effective
        return probe.effective, "".join(left)

    assert asyncio.run(scenario({"b1-b2"})) == (True, "b1-b3")
    assert asyncio.run(scenario({"b1-b3"})) == (True, "b1-b2")
    assert asyncio.run(scenario({"b1-b2", "b1-b3"})) == (False, "")


def test_markers_are_waited_for_while_a_load_stands_still() -> None:
    """After the fault before, a group may need its session and a rebalance until it ends a transaction again."""

    async def scenario() -> None:
        cluster, links = watched()
        links.absent = {int(ApiKey.WRITE_TXN_MARKERS)}
        fault = made("hold-markers", cluster, clock=CountedClock())
        await fault.choose()
        injecting = asyncio.ensure_future(fault.inject())
        while len(links.acts) < 3:  # both links have had their turn
            assert not injecting.done()
            await asyncio.sleep(0)
        links.absent = set()
        await injecting
        assert (await fault.bites()).effective
        assert links.acts[0][0] == links.acts[2][0] != links.acts[1][0]
        await fault.heal()

    asyncio.run(scenario())


def test_all_markers_are_delayed() -> None:
    """On every link between brokers, both ways, and on none of clients; with the delay that was asked for."""

    async def scenario() -> None:
        cluster, links = watched()
        fault = made("delay-markers", cluster, delay_ms=300)
        # what the verifier compares with the links that the probe looked at
        assert await fault.choose() == "b1-b2, b1-b3, b2-b1, b2-b3, b3-b1, b3-b2, markers later"
        await fault.inject()
        assert {link for link, _ in links.acts} == {"b1-b2", "b1-b3", "b2-b1", "b2-b3", "b3-b1", "b3-b2"}
        assert {(act.act, act.api_keys, act.delay_ms) for _, act in links.acts} == {("delay", (27,), 300)}
        probe = await fault.bites()
        assert probe.effective and probe.seen["frames_hit"]
        await fault.heal()
        assert (await fault.gone()).effective

    asyncio.run(scenario())


def test_links_of_a_coordinator() -> None:
    """Those of clients lead to it, those of its markers away from it; ZooKeeper's are neither."""
    names = [str(name) for name in link_names((1, 2, 12), ("producers", "readers"))]
    assert links_of_clients(names, 1) == ["producers-b1", "readers-b1"]
    assert links_to_brokers(names, 1) == ["b1-b2", "b1-b12"]
