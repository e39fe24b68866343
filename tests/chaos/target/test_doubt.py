"""What faults conclude of a broker of which no one can tell whether it runs (docs/target.md "Processes")."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from random import Random

import pytest

from chaos.faults.base import PreconditionMissing
from chaos.faults.catalogue import FAULTS
from chaos.schedules.model import Injection
from tests.chaos.conducted import FastClock
from tests.chaos.fake_cluster import FakeCluster

ROOT = Path(__file__).resolve().parents[3]


def made(name, cluster, **target):
    return FAULTS[name](Injection(0.0, name, 0.01, target), cluster, FastClock(), Random(3))


async def lived(fault, cluster, doubted):
    """Inject it, and then no one can tell about the brokers it hit."""
    await fault.choose()
    await fault.inject()
    cluster.unknown |= doubted
    during = await fault.bites()
    await fault.heal()
    return during


@pytest.mark.parametrize("name", ["kill-leader", "kill-controller", "pause-leader", "reset", "drop-packets"])
def test_a_broker_that_is_not_known_to_run_is_no_target(name):
    """Neither is its leader, until it is known again."""
    cluster = FakeCluster()
    cluster.unknown = {1}
    with pytest.raises(PreconditionMissing):
        asyncio.run(made(name, cluster).choose())
    cluster.unknown = {2, 3}
    asyncio.run(made(name, cluster).choose())


def test_a_follower_that_is_not_known_to_run_is_passed_over():
    """The one that is known to run is killed."""
    cluster = FakeCluster()
    cluster.unknown = {2}
    for _ in range(5):
        assert "broker 3" in asyncio.run(made("kill-follower", cluster).choose())


@pytest.mark.parametrize("name", ["kill-leader", "kill-all"])
def test_what_is_not_known_to_be_dead_was_not_seen_to_be_killed(name):
    """A kill bites when the process is known to be gone. It is started again in either case."""
    certain = FakeCluster()
    assert asyncio.run(lived(made(name, certain), certain, set())).effective
    doubted = FakeCluster()
    doubted.unknown = set()
    fault = made(name, doubted)
    kills = doubted.process(1).kill

    def kill():
        kills()
        doubted.unknown.add(1)

    doubted.process(1).kill = kill
    during = asyncio.run(lived(fault, doubted, {1}))
    assert not during.effective
    assert all(process.running for process in doubted.processes.values())


def test_a_link_to_a_broker_that_is_not_known_to_run_need_not_be_answered():
    """Its toxics are gone; whether the broker is, the link does not tell."""
    cluster = FakeCluster()
    fault = made("refuse", cluster)

    async def whole():
        await lived(fault, cluster, {1})
        cluster.links.ping = None
        return await fault.gone()

    assert asyncio.run(whole()).effective


def test_no_fault_asks_a_brokers_process_itself():
    """``life`` is asked of the cluster, off the event loop: the command that tells may take seconds."""
    asked = {
        path.name
        for room in ("faults", "conductor")
        for path in (ROOT / "chaos" / room).rglob("*.py")
        if re.search(r"\.process\([^()]*\)\.is_running\(", path.read_text())
    }
    # the load's processes, and those of a cluster that is up, are children
    assert asked == {"kill_load.py", "deployed.py"}
