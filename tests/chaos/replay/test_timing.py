"""What is replayed strikes when it is due, on a cluster of numbers in virtual time."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from chaos.conductor.injector import Injector
from chaos.replay.happened import happened
from chaos.replay.punctuality import punctuality
from chaos.schedules.model import Injection, Schedule
from cluster.seams.memory_storage import MemoryStorage
from tests.chaos.fake_cluster import FakeCluster
from tests.support import virtual_time

RECORD = "/run/faults.jsonl"
#: With a lossless cut nothing but time is waited for.
CUT = {"lossless": True}
LINK = {"link": "b2-b1"}


class SlowToAnswer(FakeCluster):
    """Each look at the leaders takes this long; for ``absent_s`` there is no leader to see."""

    def __init__(self, answer_s: float = 0.0, absent_s: float = 0.0) -> None:
        super().__init__()
        self._answer_s = answer_s
        self._absent_s = absent_s

    async def leader(self, partition: int) -> tuple[int, int] | None:
        await asyncio.sleep(self._answer_s)
        return await super().leader(partition) if asyncio.get_running_loop().time() >= self._absent_s else None


def _conduct(cluster: FakeCluster, *injections: Injection) -> list[dict[str, Any]]:
    """Work a schedule off and return the record; the load flows from time 0 on."""
    storage = MemoryStorage()
    storage.makedirs("/run")

    async def conduct() -> None:
        await Injector(cluster, virtual_time.LoopClock(), storage, RECORD, lambda _: None).run(
            Schedule(3, injections), 0
        )

    virtual_time.run(conduct())
    return [json.loads(line) for line in storage.read(RECORD).decode().splitlines()]


@pytest.mark.parametrize("answer_s", [0.0, 0.05, 0.6, 1.2])
def test_a_replayed_fault_strikes_when_it_is_due(answer_s: float) -> None:
    """However long it takes to find its target: that is looked for before. Planned faults look when they are due."""
    cut = Injection(5.0, "cut-link", 1.0, LINK, CUT)
    planned, _ = _conduct(SlowToAnswer(answer_s), cut)
    assert planned["start_ns"] == pytest.approx((5.0 + answer_s) * 1e9)
    schedule = Schedule(3, (Injection(5.0, "cut-link", 1.0, LINK, CUT, overlap=True, replays=0),))
    record = _conduct(SlowToAnswer(answer_s), *schedule.injections)
    assert record[0]["start_ns"] == pytest.approx(5.0 * 1e9, abs=2e6), "to the millisecond"
    assert record[0]["waited"] is False
    found = punctuality(schedule, record, 0)
    assert len(found.deviations_ms) == 2 and found.largest_ms == pytest.approx(0.0, abs=2.0)


def test_a_replayed_fault_hits_whom_it_finds_when_it_strikes() -> None:
    """A broker that leads until shortly before is not taken for the leader."""

    class Moving(SlowToAnswer):
        async def leader(self, partition: int) -> tuple[int, int] | None:
            return (1, 7) if asyncio.get_running_loop().time() < 4.5 else (2, 8)

    record = _conduct(Moving(), Injection(5.0, "isolate-broker", 0.5, {"partition": 0}, overlap=True, replays=0))
    assert record[0]["target"].startswith("broker 2, leader of")


def test_a_replayed_fault_waits_if_what_it_found_is_gone_when_it_is_due() -> None:
    """Its target died shortly before, and no one leads: it does not break a link that carries nothing anymore."""

    class Dying(SlowToAnswer):
        async def leader(self, partition: int) -> tuple[int, int] | None:
            now_s = asyncio.get_running_loop().time()
            return (1, 7) if now_s < 4.5 else (2, 8) if now_s > 6.5 else None

    cut = Injection(5.0, "isolate-broker", 0.5, {"partition": 0}, overlap=True, replays=0)
    record = _conduct(Dying(), cut)
    assert record[0]["target"].startswith("broker 2, leader of")
    assert record[0]["waited"] is True and record[0]["start_ns"] >= 6.5e9
    assert len(punctuality(Schedule(3, (cut,)), record, 0).waited) == 1


def test_what_waited_for_something_to_break_waits_again() -> None:
    """It comes as soon as there is something, and the record says why it came late; it is no deviation."""
    cut = Injection(2.0, "cut-link", 1.0, LINK, CUT)
    record = _conduct(SlowToAnswer(absent_s=4.0), cut)
    assert record[0]["waited"] is True
    again = happened(Schedule(3, (cut,)), record, 0).schedule
    (injection,) = again.injections
    assert (injection.at_s, injection.replays) == (2.0, 0)
    played = _conduct(SlowToAnswer(absent_s=3.0), injection)
    assert played[0]["start_ns"] == pytest.approx(3.0e9, rel=0.1)
    found = punctuality(again, played, 0)
    assert [line.startswith("cut-link at 2 s found nothing to break for 1,") for line in found.waited] == [True]
    assert len(found.deviations_ms) == 1, "its end has a time of its own"
    at_once = _conduct(SlowToAnswer(), injection)
    assert at_once[0]["start_ns"] == pytest.approx(2.0e9) and at_once[0]["waited"] is False


def test_what_had_to_wait_for_others_comes_when_it_came() -> None:
    """A planned fault waits until those before it are over; what is replayed strikes though they are not."""
    first = Injection(1.0, "cut-link", 4.0, LINK, CUT)
    behind = Injection(2.0, "cut-link", 1.0, {"link": "b3-b1"}, CUT)
    record = _conduct(FakeCluster(), first, behind)
    begun = {entry["number"]: entry["start_ns"] / 1e9 for entry in record if entry["phase"] == "inject"}
    assert begun == pytest.approx({0: 1.0, 1: 5.0}, abs=0.1)
    again = happened(Schedule(3, (first, behind)), record, 0).schedule
    longer = replace(again.injections[0], duration_s=9.0)
    played = _conduct(FakeCluster(), longer, again.injections[1])
    found = {entry["number"]: entry["start_ns"] / 1e9 for entry in played if entry["phase"] == "inject"}
    assert found == pytest.approx(begun, abs=0.003)


def test_a_replayed_fault_draws_what_it_drew() -> None:
    """Also when others before it are left out: direction, loss and link are those of its number."""
    three = [Injection(float(number), "cut-link", 0.2, {"partition": 0}) for number in range(1, 4)]
    record = _conduct(FakeCluster(), *three)
    targets = {entry["number"]: entry["target"] for entry in record}
    for number, injection in enumerate(three):
        alone = Injection(injection.at_s, "cut-link", 0.2, {"partition": 0}, overlap=True, replays=number)
        (begun, _) = _conduct(FakeCluster(), alone)
        assert (begun["number"], begun["target"]) == (0, targets[number])
    assert len(set(targets.values())) > 1
