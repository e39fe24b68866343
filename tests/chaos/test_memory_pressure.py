"""A broker that gets no more memory: what its probes ask for, and that nothing of the limit is left."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from chaos.conductor.broker_machine import BrokerMachine, NotOurs
from chaos.faults.base import Probe
from chaos.faults.memory_pressure import MemoryPressure
from chaos.schedules.model import Injection
from cluster.seams.clock import SystemClock
from cluster.seams.out_of_memory import LINE
from tests.chaos.conducted import FastClock
from tests.chaos.fake_cluster import FakeCluster, FakeProcess
from tests.chaos.fake_machine import FakeMachine
from verifier.evidence.run_directory import RunDirectory


async def _whole(cluster: FakeCluster, **parameters: object) -> tuple[Probe, Probe, MemoryPressure]:
    injection = Injection(0.0, "memory-pressure", 0.01, {"partition": 0}, parameters)
    fault = MemoryPressure(injection, cluster, FastClock(), Random(3))
    await fault.choose()
    await fault.inject()
    during = await fault.bites()
    await fault.heal()
    return during, await fault.gone(), fault


def test_a_broker_that_was_refused_memory_halts_and_comes_back() -> None:
    """It said so, its process ended, another one led; the next process has no limit."""
    cluster = FakeCluster()
    during, after, _ = asyncio.run(_whole(cluster, spare_kb=2))
    assert during.effective and during.seen["halts"] == 1
    assert after.effective and cluster.restarts == 1 and cluster.machines[1].limit is None


def test_a_broker_that_ended_without_a_word_was_not_refused_memory() -> None:
    """That it is gone proves no lack of memory: anything may have ended it."""
    cluster = FakeCluster()
    cluster.machines[1].halts_with_words = False
    during, after, fault = asyncio.run(_whole(cluster))
    assert during.seen["dead"] is True and not during.effective and not fault.bit(during, after)
    assert "asked for no more memory" in fault.missed(during.seen)


def test_a_broker_whose_halts_cannot_be_counted_is_seen_to_be_well() -> None:
    """What fails before the limit is set has nothing to undo, and its second probe says so."""

    class Mute(FakeMachine):
        async def halts(self) -> int:
            raise OSError("no such file")

    cluster = FakeCluster()
    cluster.machines[1] = Mute(lambda: None)
    fault = MemoryPressure(Injection(0.0, "memory-pressure", 0.01, {"partition": 0}), cluster, FastClock(), Random(3))

    async def fail() -> Probe:
        await fault.choose()
        with pytest.raises(OSError, match="no such file"):
            await fault.inject()
        await fault.heal()
        return await fault.gone()

    assert asyncio.run(fail()).effective


class Modest(FakeMachine):
    """It asks for nothing more."""

    async def take_memory(self, spare_kb: int) -> None:
        self.limit = spare_kb


def test_a_broker_that_asks_for_nothing_goes_on() -> None:
    """It gets its memory back, and is not restarted; the fault did not bite."""
    cluster = FakeCluster()
    machine = cluster.machines[1] = Modest(lambda: None)
    during, after, fault = asyncio.run(_whole(cluster, spare_kb=0))
    assert machine.limit is None and cluster.restarts == 0
    assert not during.effective and after.effective and not fault.bit(during, after)


def test_a_limit_that_stays_is_not_healed() -> None:
    """A run must not end with a broker that may not grow."""

    class Stuck(Modest):
        async def give_memory(self) -> None:
            raise OSError("it does not listen")

    cluster = FakeCluster()
    cluster.machines[1] = Stuck(lambda: None)
    _, after, _ = asyncio.run(_whole(cluster))
    assert after.seen["limited"] is True and not after.effective


def test_halts_are_counted_over_all_lives(tmp_path: Path) -> None:
    """A halt is counted by the line that the broker or a codec writes last; other output does not count."""
    directory = RunDirectory(tmp_path)
    machine = BrokerMachine(1, {}, FakeProcess(7), directory, SystemClock())
    assert asyncio.run(machine.halts()) == 0
    output = directory.node(1) / "process.log"
    output.parent.mkdir(parents=True)
    refused = b"memory allocation of 65536 bytes failed\n"
    output.write_bytes(b"started\n" + LINE + refused + b"no memory allocation of 1 bytes failed\n" + LINE)
    assert asyncio.run(machine.halts()) == 3
    with pytest.raises(NotOurs, match="was not started by gapless"):
        asyncio.run(machine.give_memory())
