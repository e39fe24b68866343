"""Each fault's life on a cluster of numbers: it bites, is undone, leaves nothing, and says so when it does not bite."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest

from chaos.conductor.injector import Injector
from chaos.faults.base import Probe
from chaos.faults.catalogue import FAULTS
from chaos.faults.damage import LinkTraffic
from chaos.faults.machine import MachineState
from chaos.schedules.model import Injection, Schedule
from cluster.seams.clock import SystemClock
from cluster.seams.memory_storage import MemoryStorage
from tests.chaos.conducted import RECORD, FastClock, conduct, conduct_with_little_patience
from tests.chaos.fake_cluster import FakeCluster, FakeLinks
from tests.chaos.fake_machine import FakeMachine
from tests.support.faults import of_zookeeper
from verifier.closing.closing import Closing
from verifier.completeness.targets import misnamed
from verifier.witness.effectiveness import fault_record


def _cluster_for(name: str) -> FakeCluster:
    """With two processes of producers where one is to be killed."""
    cluster = FakeCluster()
    if FAULTS[name].kills_load == "producers":
        cluster.own_load.add("producers-2")
    return cluster


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_bites_and_leaves_nothing(name: str) -> None:
    """Injected, probed, healed, probed again; both steps are on record, and the cluster is whole afterwards."""
    cluster = _cluster_for(name)
    record = conduct(cluster, Injection(0.0, name, 0.01, {"partition": 1}))
    assert [(entry["fault"], entry["phase"]) for entry in record] == [(name, "inject"), (name, "heal")]
    assert record[-1]["effective"] is True
    assert asyncio.run(cluster.in_sync())
    assert not any(cluster.links.toxics.values())
    assert cluster.own_zookeeper is not None
    assert cluster.own_zookeeper.serves()


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_the_verifier_finds_that_a_fault_hit_what_it_named(name: str) -> None:
    """Target and probe name the same brokers and links: otherwise the run would be unknown."""
    record = fault_record(conduct(_cluster_for(name), Injection(0.0, name, 0.01, {"partition": 1})), 1)
    closing = SimpleNamespace(faults=record, looks={})
    assert [*misnamed(cast(Closing, closing))] == []


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_that_does_nothing_is_seen_not_to_bite(name: str) -> None:
    """The probe looks at the cluster, not at what was asked of it."""
    cluster = _cluster_for(name)
    cluster.links.deaf = True
    for process in (*cluster.processes.values(), cluster.own_zookeeper, *cluster.own_load.all.values()):
        process.deaf = True
    cluster.own_load.deaf = cluster.orders.deaf = True
    for machine in cluster.machines.values():
        machine.deaf = True
    fault = FAULTS[name]
    patience = FakeCluster.session_timeout_ms + 6_000
    assert patience > 0
    record = conduct_with_little_patience(cluster, Injection(0.0, name, 0.01, {"partition": 0}))
    assert record[-1]["effective"] is False, (fault, record)


def test_faults_of_zookeeper_need_a_zookeeper_of_our_own() -> None:
    """One that was given with --zookeeper is not ours to break: skipped, and the record says why."""
    cluster = FakeCluster()
    cluster.own_zookeeper = None
    for name in of_zookeeper():
        (record,) = conduct_with_little_patience(cluster, Injection(0.0, name, 0.01))
        assert record["phase"] == "skip"
        assert "--zookeeper" in str(record["probe"])


class SeldomAsked(FakeLinks):
    """ZooKeeper's links carry nothing for longer than a second: brokers with a long session seldom ping."""

    looks = 0

    async def stats(self, link: str) -> LinkTraffic | None:
        if not link.endswith("-zk"):
            return await super().stats(link)
        self.looks += 1
        # three links, a look every 50 ms
        return LinkTraffic(100 if self.looks < 3 * 22 else 200, 100, 0, 0, 0, 0)


def test_a_pause_of_zookeeper_waits_for_the_ping_of_a_long_session() -> None:
    """Kafka's 18 s: a broker pings after up to 6 s, and until then nothing can show that requests stall."""
    cluster = FakeCluster()
    cluster.links, cluster.session_timeout_ms = SeldomAsked(), 18_000
    record = conduct(cluster, Injection(0.0, "pause-zookeeper", 0.01, {"partition": 0}))
    assert record[0]["effective"] is True, record


def test_a_rolling_restart_that_is_cut_short_leaves_every_broker_running() -> None:
    """Ctrl-C in the middle: the broker that is down comes up again."""
    cluster = FakeCluster()

    async def conduct() -> None:
        storage, clock = MemoryStorage(), SystemClock()
        storage.makedirs("/run")
        injector = Injector(cluster, clock, storage, RECORD, lambda _: None)
        schedule = Schedule(3, (Injection(0.0, "rolling-restart", 5.0),))
        down = asyncio.Event()

        async def never(_: int) -> None:
            down.set()
            await asyncio.Event().wait()

        original, cluster.restart = cluster.restart, never  # type: ignore[method-assign]
        task = asyncio.create_task(injector.run(schedule, clock.monotonic_ms()))
        await down.wait()
        task.cancel()
        await asyncio.wait([task])
        assert not all(process.running for process in cluster.processes.values())
        cluster.restart = original  # type: ignore[method-assign]
        assert [each.fault for each in injector.lasting] == ["rolling-restart"]
        await injector.heal_all()
        assert injector.lasting == ()
        assert [(each.fault, each.effect) for each in injector.past] == [("rolling-restart", "cut short")]

    asyncio.run(asyncio.wait_for(conduct(), 10))
    assert all(process.running for process in cluster.processes.values())


@pytest.mark.parametrize("dead", [2, 3])
def test_a_link_of_a_dead_broker_is_not_cut(dead: int) -> None:
    """Nothing flows on it, so that a cut would not bite: of the followers, only one that runs has its link cut."""
    cluster = FakeCluster()
    cluster.processes[dead].running = False
    how = {"direction": "response", "lossless": True}
    first = conduct(cluster, Injection(0.0, "cut-link", 0.01, {"link": "followers"}, how))[0]
    assert first["target"] == f"b{5 - dead}-b1, responses only, lossless"


def test_without_a_follower_there_is_no_link_to_cut() -> None:
    """That is on record as a skipped injection."""
    cluster = FakeCluster()
    cluster.processes[2].running = cluster.processes[3].running = False
    record = conduct_with_little_patience(cluster, Injection(0.0, "cut-link", 0.01, {"link": "followers"}))
    assert (record[0]["phase"], record[0]["effective"]) == ("skip", False)
    assert "no follower of broker 1 runs" in str(record[0]["probe"])


def test_an_expiry_that_no_journal_tells_has_not_bitten() -> None:
    """A broker that others count as dead may have lost its connection alone."""

    class Silent(FakeCluster):
        async def journaled(self, event: str, broker_id: int | None = None) -> int:
            return 3

    record = conduct_with_little_patience(Silent(), Injection(0.0, "expire-session", 0.01, {"partition": 0}))
    probe = record[-1]["probe"]
    assert isinstance(probe, dict) and probe["sessions_expired"] == 0
    assert record[0]["effective"] is True and record[-1]["effective"] is False


def test_a_starved_broker_is_left_running_and_was_stopped_for_its_share() -> None:
    """Stopped again and again, and never after the heal; the probe measures the share that was taken."""
    cluster = FakeCluster()
    record = conduct(cluster, Injection(0.0, "starve-cpu", 0.01, {"partition": 0}, {"percent": 80}))
    probe = record[0]["probe"]
    assert isinstance(probe, dict) and 40 <= probe["taken_percent"] <= 100 and probe["longest_answer_ms"] >= 100
    assert record[-1]["effective"] is True and record[-1]["healed"] is True
    assert not cluster.processes[1].suspended


@pytest.mark.parametrize(("name", "left"), [("kill-producers", "producers"), ("kill-readers", "readers-native")])
def test_the_last_process_of_its_kind_is_not_killed(name: str, left: str) -> None:
    """The rest of the run would prove nothing: skipped, with the reason."""
    cluster = FakeCluster()
    cluster.own_load.all = {left: cluster.own_load.all[left]}
    (record,) = conduct_with_little_patience(cluster, Injection(0.0, name, 0.01))
    assert record["phase"] == "skip" and "fewer than two processes" in str(record["probe"])
    assert cluster.own_load.all[left].running


def test_a_kill_of_load_bites_when_the_others_do_more() -> None:
    """The record has the process, what it had done, and what the others did afterwards."""
    cluster = _cluster_for("kill-producers")
    target = {"process": "producers-2"}
    during, after = conduct(cluster, Injection(0.0, "kill-producers", 0.01, target))
    probe, later = during["probe"], after["probe"]
    assert isinstance(probe, dict) and isinstance(later, dict)
    assert probe["process"] == "producers-2" and probe["dead"] is True and probe["records_before"] > 0
    assert later["records_of_others"] > 0 and after["effective"] is True
    assert cluster.own_load.all["producers"].running and not cluster.own_load.all["producers-2"].running


def _probed(name: str, cluster: FakeCluster, seed: int = 3, **parameters: object) -> tuple[Probe, bool]:
    """What the probe of a fault sees while it lasts, and whether the fault bit; it is healed afterwards."""
    fault = FAULTS[name](Injection(0.0, name, 0.01, {"partition": 0}, parameters), cluster, FastClock(), Random(seed))

    async def work() -> tuple[Probe, bool]:
        await fault.choose()
        await fault.inject()
        during = await fault.bites()
        await fault.heal()
        return during, fault.bit(during, await fault.gone())

    return asyncio.run(work())


@pytest.mark.parametrize("name", ["isolate-broker", "expire-session", "zookeeper-from-one"])
def test_a_broker_is_not_dead_because_no_broker_answers(name: str) -> None:
    """On a machine that is too busy, the conductor gets no answers for a while: no one has counted anyone as dead."""

    class Silent(FakeCluster):
        async def alive(self) -> frozenset[int]:
            return frozenset() if self.links.is_cut("b1-zk") else await super().alive()

    during, bit = _probed(name, Silent())
    assert not bit and during.seen["counted_dead"] is False
    assert _probed(name, FakeCluster())[1]


def test_only_a_replica_is_a_follower() -> None:
    """With more brokers than replicas, another broker has nothing that it follows."""

    class Two(FakeCluster):
        async def replicas(self, partition: int) -> tuple[int, ...]:
            return (3, 1)

    hit = {_probed("kill-follower", Two(), seed)[0].seen["broker"] for seed in range(9)}
    assert hit == {3}
    assert {_probed("kill-follower", FakeCluster(), seed)[0].seen["broker"] for seed in range(9)} == {2, 3}
    assert FAULTS["kill-follower"].least_replicas == 2


def test_a_broker_that_did_not_stay_up_is_not_healed() -> None:
    """One without a replica is in no ISR, so all of them are full without it."""

    class Dying(FakeCluster):
        async def restart(self, broker_id: int) -> None:
            await super().restart(broker_id)
            self.processes[broker_id].running = False

        async def in_sync(self) -> bool:
            return True

    record = conduct_with_little_patience(Dying(), Injection(0.0, "kill-controller", 0.01))
    assert (record[-1]["effective"], record[-1]["healed"]) == (True, False)


def test_a_link_that_nothing_is_sent_on_is_not_cut() -> None:
    """It was used once, and is as quiet without the cut: of a lossless one, something must be held back."""

    class Idle(FakeLinks):
        async def stats(self, link: str) -> LinkTraffic | None:
            return LinkTraffic(100, 100, 0, 0, 0, 3)

    cluster = FakeCluster()
    cluster.links = Idle()
    during, bit = _probed("cut-link", cluster, lossless=True)
    assert not bit and during.seen["quiet"] and during.seen["held_bytes"] == 0
    during, bit = _probed("cut-link", FakeCluster(), lossless=True)
    assert bit and during.seen["held_bytes"] > 0


def test_syncs_that_an_earlier_fault_delayed_do_not_count() -> None:
    """The disk counts from the start of the process; a busy one makes the broker wait without any delay."""

    class Delayed(FakeMachine):
        async def see(self) -> MachineState | None:
            state = await super().see()
            assert state is not None
            return replace(state, delayed_syncs=state.delayed_syncs + 3, longest_sync_ms=450)

    class Busy(FakeCluster):
        waited_s = 0.0

        async def counter(self, broker_id: int, name: str) -> float | None:
            self.waited_s += 0.5
            return self.waited_s

    cluster = Busy()
    cluster.machines = {each: Delayed(lambda: None, deaf=True) for each in cluster.broker_ids}
    during, bit = _probed("slow-disk", cluster)
    assert not bit and during.seen["delayed_syncs"] == 0
    cluster.machines = {each: Delayed(lambda: None) for each in cluster.broker_ids}
    assert _probed("slow-disk", cluster)[1]


@pytest.mark.parametrize(
    ("name", "other"), [("clock-jump", "clock-drift"), ("clock-drift", "clock-jump"), ("slow-disk", "slow-disk")]
)
def test_what_another_fault_undid_did_not_last(name: str, other: str) -> None:
    """A broker has one clock and one disk: who heals first leaves the other fault nothing."""
    cluster = FakeCluster()
    faults = [
        FAULTS[each](Injection(0.0, each, 0.01, {"partition": 0}), cluster, FastClock(), Random(3))
        for each in (other, name)
    ]

    async def work() -> list[bool]:
        probes = []
        for fault in faults:
            await fault.choose()
            await fault.inject()
            probes.append(await fault.bites())
        bit = []
        for fault, during in zip(faults, probes, strict=True):
            await fault.heal()
            assert during.effective
            bit.append(fault.bit(during, await fault.gone()))
        return bit

    *_, last = asyncio.run(work())
    assert not last
    assert _probed(name, FakeCluster())[1]


def test_a_connection_that_a_client_closed_is_not_reset() -> None:
    """A reset takes what was sent with it."""

    class Closing(FakeLinks):
        async def stats(self, link: str) -> LinkTraffic | None:
            self.made += 1
            return LinkTraffic(100, 100, 7, 7, 0, self.made)

    cluster = FakeCluster()
    cluster.links = Closing()
    during, bit = _probed("reset", cluster)
    assert not bit and during.seen["closed_connections"] > 0 and during.seen["dropped_bytes"] == 0
    assert _probed("reset", FakeCluster())[1]
