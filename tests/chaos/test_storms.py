"""Faults that kill several brokers or wipe one: what their probes ask for, and how a reaction is counted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from chaos.conductor.broker_machine import BrokerMachine
from chaos.faults.base import Probe
from chaos.faults.breakable import ProcessLife
from chaos.faults.catalogue import FAULTS
from chaos.faults.damage import FrameAct, Marks
from chaos.faults.reaction import ClusterReaction, reaction
from chaos.schedules.model import Injection
from cluster.seams.clock import SystemClock
from tests.chaos.conducted import FastClock
from tests.chaos.fake_cluster import FakeCluster, FakeLinks, FakeProcess
from verifier.evidence.run_directory import RunDirectory


def _change(partition: int, epoch: int, isr: list[int], time_ns: int, topic: str = "t") -> dict[str, object]:
    changed = {"topic": topic, "partition": partition, "leader": isr[0], "leader_epoch": epoch, "isr": isr}
    return {"event": "partition-changed", "monotonic_ns": time_ns, "reason": "test", **changed}


def test_a_reaction_counts_epochs_and_changes_of_isrs_over_all_journals() -> None:
    """By the time of each entry, as controllers change; other topics and events do not count."""
    first = [_change(0, 0, [1, 2, 3], 1), _change(1, 0, [2, 3, 1], 2), _change(0, 2, [2, 3, 1], 9)]
    second = [
        {"event": "controller-elected", "monotonic_ns": 4, "epoch": 2},
        _change(0, 1, [2, 3], 5),
        _change(0, 1, [3, 2], 6),
        _change(7, 3, [3], 7, topic="__consumer_offsets"),
        {"event": "log-truncated", "monotonic_ns": 8, "topic": "t", "offset": 4, "log_end_offset": 9},
        {"event": "log-truncated", "monotonic_ns": 9, "topic": "t", "offset": 4, "log_end_offset": 4},
    ]
    seen = reaction([*first, *second], "t")
    assert seen == ClusterReaction(leader_epochs=4, isr_changes=2, truncations=1)
    assert seen.since(reaction(first[:2], "t")) == ClusterReaction(2, 2, 1)


async def _during(name: str, cluster: FakeCluster, seed: int = 3, **parameters: object) -> Probe:
    """What the probe of this fault sees while it lasts; it is healed afterwards."""
    fault = FAULTS[name](Injection(0.0, name, 0.01, {"partition": 0}, parameters), cluster, FastClock(), Random(seed))
    await fault.choose()
    await fault.inject()
    try:
        return await fault.bites()
    finally:
        await fault.heal()


@pytest.mark.parametrize("next_tail", [True, False])
@pytest.mark.parametrize("tail", [True, False])
@pytest.mark.parametrize("back", [True, False])
def test_a_double_failover_kills_two_leaders(back: bool, tail: bool, next_tail: bool) -> None:
    """The first, and the next one while the first is no longer in the ISR, whether or not it starts again."""

    class Watched(FakeLinks):
        cuts: list[tuple[str, str, bool]]
        acts: list[tuple[str, FrameAct]]

        async def act_on_frames(self, link: str, act: FrameAct) -> Marks:
            self.acts.append((link, act))
            return await super().act_on_frames(link, act)

        async def cut(self, link: str, direction: str, *, lossless: bool) -> Marks:
            self.cuts.append((link, direction, lossless))
            return await super().cut(link, direction, lossless=lossless)

    cluster = FakeCluster()
    links = cluster.links = Watched()
    links.cuts, links.acts = [], []
    probe = asyncio.run(_during("double-failover", cluster, back=back, tail=tail, next_tail=next_tail))
    # the tail of the first one must not reach its followers when it is dead
    assert links.cuts == [("b2-b1", "response", False), ("b3-b1", "response", False)] * tail
    # of the next one, only what followers ask for: a controller must reach it
    acts = [(link, act.act, act.api_keys, act.direction, act.lossy) for link, act in links.acts]
    assert acts == [("b3-b2", "hold", (1, 23), "response", True)] * next_tail
    assert not any(links.toxics.values())
    assert [(step["broker"], step["dead"]) for step in probe.seen["steps"]] == [(1, True), (2, True)]
    assert probe.effective


def test_what_producers_wrote_to_the_next_leader_at_once_is_not_waited_for_again() -> None:
    """All that they may have in flight may be there when it is first seen to lead, and then nothing more comes."""
    asked: list[bool] = []

    class AtOnce(FakeCluster):
        async def counter(self, broker_id: int, name: str) -> float | None:
            asked.append(self.processes[1].running)
            return 0.0 if self.processes[1].running else 10.0

    probe = asyncio.run(_during("double-failover", AtOnce(), back=False, tail=False, next_tail=True))
    assert probe.effective and asked == [True, False]


class LetsIn(FakeCluster):
    """``is_strict``: broker 3 joins the ISR of broker 2 only when it is answered."""

    def __init__(self, is_strict: bool) -> None:
        super().__init__()
        self.is_strict = is_strict
        #: Who died, and what was held then.
        self.died: list[tuple[int, list[str]]] = []

    async def isr(self, partition: int) -> frozenset[int]:
        waits = self.is_strict and self.links.holds_frames("b3-b2")
        return frozenset(self._reachable()) - ({3} if waits else set())

    async def life(self, broker_id: int) -> ProcessLife:
        if not self.processes[broker_id].running:
            self.died.append((broker_id, [link for link in self.link_names if self.links.holds_frames(link)]))
        return await super().life(broker_id)


def test_the_first_leader_dies_when_it_has_confirmed_what_only_the_next_one_has() -> None:
    """Before that, what the others lack might never have been committed."""
    cluster = LetsIn(is_strict=True)
    acked: list[int] = []

    async def last_acked_ns(name: str, partition: int) -> int:
        assert partition == 0, "others' acknowledgements say nothing about this one"
        if cluster.processes[1].running:
            acked.append(100 if len(acked) < 2 else 107)
        return acked[-1]

    cluster.own_load.last_acked_ns = last_acked_ns  # type: ignore[method-assign]
    probe = asyncio.run(_during("double-failover", cluster, back=False, ahead=True))
    assert probe.effective and acked == [100, 100, 107]


@pytest.mark.parametrize("is_strict", [True, False])
def test_the_next_leader_may_be_ahead_of_the_others(is_strict: bool) -> None:
    """It dies when they are in its ISR: before it answered them, if it lets them in too early."""
    cluster = LetsIn(is_strict)
    probe = asyncio.run(_during("double-failover", cluster, back=False, ahead=True))
    assert cluster.died[:3] == [(3, []), (1, ["b2-b1"]), (2, [] if is_strict else ["b3-b2"])]
    assert [(step["broker"], step["dead"]) for step in probe.seen["steps"]] == [(3, True), (1, True), (2, True)]
    assert probe.effective and not any(cluster.links.toxics.values())


def test_a_double_failover_does_not_bite_with_the_first_leader_back_in_the_isr() -> None:
    """Then it is two failovers one after the other, as any schedule has them."""

    class Forgetful(FakeCluster):
        async def isr(self, partition: int) -> frozenset[int]:
            return frozenset(self.broker_ids)

    assert not asyncio.run(_during("double-failover", Forgetful())).effective


def test_a_double_failover_waits_until_the_death_of_the_first_is_known() -> None:
    """A preferred election may give the lead to the next one before: then it leads at once, beside the dead one."""

    class LedBefore(FakeCluster):
        looks = 0

        async def isr(self, partition: int) -> frozenset[int]:
            self.looks += not self.processes[1].running
            return frozenset(self.broker_ids) if self.looks < 3 else await super().isr(partition)

    assert asyncio.run(_during("double-failover", LedBefore(), back=False, tail=False)).effective


def test_a_double_failover_does_not_bite_if_no_one_knows_the_isr() -> None:
    """That no broker answers does not say that the first leader was out of it."""

    class Silent(FakeCluster):
        async def isr(self, partition: int) -> frozenset[int]:
            return frozenset()

    assert not asyncio.run(_during("double-failover", Silent())).effective


def test_a_double_failover_whose_next_leader_is_another_names_who_was_to_die() -> None:
    """The record says what happened: the verifier compares target and probe."""

    class Otherwise(FakeCluster):
        async def replicas(self, partition: int) -> tuple[int, ...]:
            return (1, 3, 2)

    probe = asyncio.run(_during("double-failover", Otherwise()))
    assert [(step["broker"], step["dead"]) for step in probe.seen["steps"]] == [(1, True), (3, False)]
    assert not probe.effective


def test_a_storm_kills_as_often_as_it_is_told() -> None:
    """Each time the process that runs then; all of them come back."""
    cluster = FakeCluster()
    probe = asyncio.run(_during("restart-storm", cluster, rounds=6))
    assert len(probe.seen["steps"]) == 6 and probe.effective
    assert all(process.running for process in cluster.processes.values())


def test_a_majority_is_more_than_half() -> None:
    """Two of three; the other one stays, and says that they are gone."""
    probe = asyncio.run(_during("kill-majority", FakeCluster()))
    assert len(probe.seen["steps"]) == 2 and probe.effective


@pytest.mark.parametrize("name", ["kill-all", "kill-majority", "restart-storm", "double-failover"])
def test_who_was_killed_must_be_followed_by_elections(name: str) -> None:
    """Processes that are gone prove nothing about the cluster: its journals must show leader epochs."""
    fault = FAULTS[name](Injection(0.0, name, 0.01), FakeCluster(), FastClock(), Random(1))
    during = Probe(True)
    assert fault.bit(during, Probe(True, {"leader_epochs": 2}))
    assert not fault.bit(during, Probe(True, {"leader_epochs": 0}))
    assert not fault.bit(Probe(False), Probe(True, {"leader_epochs": 2}))


@pytest.mark.parametrize("deaf", [False, True])
def test_only_the_disk_of_a_broker_that_is_down_is_wiped(deaf: bool) -> None:
    """A kill that did nothing leaves the disk alone: a broker that runs would lose what it is writing."""
    cluster = FakeCluster()
    cluster.processes[1].deaf = deaf
    probe = asyncio.run(_during("kill-and-wipe", cluster))
    assert probe.effective is not deaf
    assert probe.seen["lost_bytes"] == (0 if deaf else 100)


def test_a_wipe_leaves_an_empty_data_directory(tmp_path: Path) -> None:
    """Files and directories, however deep; what is beside it stays."""
    directory = RunDirectory(tmp_path).prepare()
    data = directory.node(2) / "data"
    (data / "t-0").mkdir(parents=True)
    (data / "meta.properties").write_text("broker.id=2")
    (data / "t-0" / "00000000000000000000.log").write_bytes(b"x" * 50)
    (data / "t-0" / "00000000000000000000.index").write_bytes(b"x" * 8)
    (directory.node(2) / "control.jsonl").write_text("{}")
    machine = BrokerMachine(2, {}, FakeProcess(1), directory, SystemClock())
    assert asyncio.run(machine.held_bytes()) == 50
    assert asyncio.run(machine.wipe()) == 11 + 50 + 8
    assert [*data.iterdir()] == [] and asyncio.run(machine.held_bytes()) == 0
    assert (directory.node(2) / "control.jsonl").exists()
