"""Faults on the load, on a cluster of numbers: whom they choose, what they order, and when they say that they bit."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from chaos.faults.base import Fault, PreconditionMissing
from chaos.faults.breakable import ProducerSeen
from chaos.faults.catalogue import FAULTS
from chaos.schedules.model import Injection
from tests.chaos.conducted import FastClock
from tests.chaos.fake_cluster import FakeCluster
from tests.support.faults import of_loads


def made(name: str, cluster: FakeCluster, seed: int = 1, **target: Any) -> Fault:
    return FAULTS[name](Injection(0.0, name, 5.0, target), cluster, FastClock(), Random(seed))


@pytest.mark.parametrize("name", of_loads())
def test_without_a_load_there_is_no_target(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a cluster that is only up."""
    monkeypatch.setattr(FakeCluster, "load", None)
    with pytest.raises(PreconditionMissing, match="not this run's own"):
        asyncio.run(made(name, FakeCluster()).choose())


@pytest.mark.parametrize(("name", "process"), [("pause-producers", "producers"), ("pause-members", "members-native")])
def test_a_pause_takes_the_process_that_is_named(name: str, process: str) -> None:
    """Or one that is drawn; one that does not run is no target."""
    assert asyncio.run(made(name, FakeCluster(), process=process).choose()) == f"load process {process}"
    with pytest.raises(PreconditionMissing, match="producers-9"):
        asyncio.run(made(name, FakeCluster(), process="producers-9").choose())
    cluster = FakeCluster()
    for each in cluster.own_load.all.values():
        each.running = False
    with pytest.raises(PreconditionMissing, match="no process of"):
        asyncio.run(made(name, cluster).choose())


def test_the_epochs_of_other_processes_say_nothing() -> None:
    """A producer that is fenced elsewhere does not show that this one was."""
    cluster = FakeCluster()

    async def producers() -> dict[str, ProducerSeen]:
        cluster.own_load.epoch += 1
        steady = ProducerSeen(9, 4, 10)
        return {"gapless-1-producers-0": steady, "gapless-1-producers-2-3": ProducerSeen(8, cluster.own_load.epoch, 10)}

    cluster.producers = producers  # type: ignore[method-assign]

    async def scenario() -> None:
        fault = made("pause-producers", cluster)
        await fault.choose()
        await fault.inject()
        probe = await fault.bites()
        assert not probe.effective and probe.seen["stopped"] and probe.seen["fenced"] == 0
        await fault.heal()
        assert (await fault.gone()).effective

    asyncio.run(scenario())


def test_half_of_the_members_crash_for_as_long_as_the_fault_lasts() -> None:
    """Others with other seeds, of both clients; the order names them."""
    drawn = set()
    for seed in range(20):
        cluster = FakeCluster()
        fault = made("crash-members", cluster, seed)
        assert asyncio.run(fault.choose()).endswith(" of 6")
        asyncio.run(fault.inject())
        ((end, names, absence_s),) = cluster.own_load.orders
        assert (end, len(names), absence_s) == ("crash", 3, 5.0)
        drawn.add(names)
    assert len(drawn) > 5
    assert any({name.split("-")[1] for name in names} == {"confluent", "native"} for names in drawn)


def test_each_member_is_restarted_as_it_is_one_after_the_other() -> None:
    """A static one stays in the group, which is what its restart is; a dynamic one leaves."""
    cluster = FakeCluster()

    async def scenario() -> None:
        fault = made("restart-members", cluster)
        await fault.choose()
        await fault.inject()
        assert [(end, len(names)) for end, names, _ in cluster.own_load.orders] == [
            *(("restart", 1), ("leave", 1), ("leave", 1), ("restart", 1), ("leave", 1), ("leave", 1))
        ]
        probe = await fault.bites()
        assert probe.effective and [step["static"] for step in probe.seen["steps"]] == [True, False, False] * 2

    asyncio.run(scenario())


def test_a_member_alone_is_no_group() -> None:
    """A storm needs others who go on, and a rolling restart someone to take over."""
    cluster = FakeCluster()
    for name in list(cluster.own_load.names)[1:]:
        del cluster.own_load.names[name]
    for name in ("crash-members", "restart-members"):
        with pytest.raises(PreconditionMissing, match="the group has 1 member"):
            asyncio.run(made(name, cluster).choose())
