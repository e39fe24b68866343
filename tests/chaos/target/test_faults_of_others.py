"""Faults on a cluster that others started: links of clients alone, no journals, no counters, no disks. Each that may be
asked for there bites and leaves nothing."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from chaos.faults.catalogue import FAULTS
from chaos.faults.reaction import ClusterReaction, told_epochs
from chaos.schedules.model import Injection
from cluster.process.topology import LinkName
from cluster.seams.clock import SystemClock
from tests.chaos.conducted import FastClock
from tests.chaos.fake_cluster import FakeCluster
from tests.chaos.target.test_asked import ON_CLIENTS, ON_PROCESSES

#: Nothing needs the brokers' own figures where faults are on the load or on frames of coordinators alone.
NAMES = sorted(name for name in ON_CLIENTS | ON_PROCESSES)


class ClusterOfOthers(FakeCluster):
    """What it cannot tell, it does not."""

    is_own = False

    def __init__(self) -> None:
        super().__init__()
        self.link_names = tuple(
            str(LinkName(group, f"b{broker}")) for group in ("producers", "readers") for broker in self.broker_ids
        )

    def machine(self, broker_id):
        raise AssertionError("no machine of a broker is reached")

    async def stop(self, broker_id, timeout_ms):
        raise AssertionError("no broker can be stopped cleanly")

    def zookeeper(self):
        return None

    async def journaled(self, event, broker_id=None):
        raise AssertionError("there are no journals")

    async def reaction(self):
        dead = sum(not process.running for process in self.processes.values())
        return ClusterReaction(self.restarts + dead, None)

    async def elections(self, topic, partition, reason):
        raise AssertionError("there are no journals")

    async def counter(self, broker_id, name):
        return None


def lived(name, cluster, **parameters):
    """Probes while it lasts and after, and whether it bit."""
    clock = SystemClock() if name in ("flapping", "starve-cpu") else FastClock()
    fault = FAULTS[name](Injection(0.0, name, 0.01, {}, parameters), cluster, clock, Random(3))

    async def life():
        await fault.choose()
        await fault.inject()
        during = await fault.bites()
        await fault.heal()
        after = await fault.gone()
        return during, after, fault.bit(during, after)

    return asyncio.run(life())


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_bites_there_and_leaves_nothing(name):
    """On the links of clients, on processes, and on the load."""
    cluster = ClusterOfOthers()
    if name == "kill-producers":
        cluster.own_load.add("producers-1")
    during, after, bit = lived(name, cluster)
    assert bit, (during, after)
    assert after.effective, after
    assert not any(cluster.links.toxics.values())
    assert all(process.running and not process.suspended for process in cluster.processes.values())


def test_what_no_one_tells_is_not_recorded():
    """Brokers of others report no changes of ISRs, and count no retries: no figure of zero is made up."""
    for name in ("leader-with-followers", "restart-storm", "drop-response"):
        during, after, _ = lived(name, ClusterOfOthers())
        assert not {"isr_changes", "retries", "batches_while_cut"} & {*during.seen, *after.seen}


def test_a_second_death_without_a_link_between_brokers_has_no_tail():
    """double-failover cuts followers off where it can; where it cannot, both leaders die all the same."""
    fault = FAULTS["double-failover"](
        Injection(0.0, "double-failover", 0.01, {}, {"tail": True}), ClusterOfOthers(), FastClock(), Random(3)
    )
    assert "could not fetch" not in asyncio.run(fault.choose())
    own = FAULTS["double-failover"](
        Injection(0.0, "double-failover", 0.01, {}, {"tail": True}), FakeCluster(), FastClock(), Random(3)
    )
    assert "could not fetch" in asyncio.run(own.choose())


def test_epochs_are_told_by_metadata():
    """Their sum rises with every election; while no broker answers, nothing began."""
    before = told_epochs((3, 0, -1))
    assert told_epochs((4, 1, -1)).since(before) == ClusterReaction(2, None)
    assert told_epochs(()).since(before) == ClusterReaction(0, None)
