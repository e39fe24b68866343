"""The life of an injection, whatever the fault: its order among others, its record, and how it ends."""

from __future__ import annotations

import asyncio
import json

import pytest

from chaos.conductor.injector import Injector, NotHealed
from chaos.faults.catalogue import FAULTS
from chaos.faults.damage import Marks
from chaos.schedules.model import Injection, Schedule
from cluster.seams.clock import SystemClock
from cluster.seams.memory_storage import MemoryStorage
from tests.chaos.conducted import RECORD, FastClock, conduct, conduct_with_little_patience
from tests.chaos.fake_cluster import FakeCluster, FakeLinks
from tests.chaos.fake_orders import FakeOrders
from verifier.witness.effectiveness import fault_record


def test_faults_that_overlap_on_one_link_heal_each_its_own() -> None:
    """The end of the shorter cut leaves the longer one in place, which still bites when it is looked at again."""

    class Watched(FakeLinks):
        """Notes after each heal whether the link is still cut."""

        def __init__(self) -> None:
            super().__init__()
            self.cut_after_heal: list[bool] = []

        async def heal(self, marks: Marks) -> None:
            await super().heal(marks)
            self.cut_after_heal.append(self.is_cut("b2-b1"))

    cluster = FakeCluster()
    links = cluster.links = Watched()

    async def conduct() -> list[dict[str, object]]:
        storage, clock = MemoryStorage(), SystemClock()
        storage.makedirs("/run")
        injector = Injector(cluster, clock, storage, RECORD, lambda _: None)
        target, how = {"link": "b2-b1"}, {"direction": "response", "lossless": True}
        both = (
            Injection(0.0, "cut-link", 0.9, target, how),
            Injection(0.0, "cut-link", 0.01, target, how, overlap=True),
        )
        await injector.run(Schedule(3, both), clock.monotonic_ms())
        return [json.loads(line) for line in storage.read(RECORD).decode().splitlines()]

    record = asyncio.run(asyncio.wait_for(conduct(), 10))
    assert links.cut_after_heal == [True, False]
    assert [entry["effective"] for entry in record] == [True] * 4


def test_a_fault_that_cannot_be_undone_ends_the_schedule_with_its_name() -> None:
    """A broker that does not come up again is no cluster to go on with; what is on record says why."""

    class Broken(FakeCluster):
        async def restart(self, broker_id: int) -> None:
            raise OSError("it does not come up")

    storage, clock = MemoryStorage(), SystemClock()
    storage.makedirs("/run")
    injector = Injector(Broken(), clock, storage, RECORD, lambda _: None)
    schedule = Schedule(3, (Injection(0.0, "kill-follower", 0.01, {"partition": 0}),))
    with pytest.raises(NotHealed, match=r"kill-follower on broker \d, .*could not be healed: it does not come up"):
        asyncio.run(injector.run(schedule, clock.monotonic_ms()))
    asyncio.run(injector.heal_all())
    assert [(each.fault, each.effect, each.detail) for each in injector.past] == [
        ("kill-follower", "not healed", "it does not come up")
    ]
    assert injector.lasting == ()
    last = json.loads(storage.read(RECORD).decode().splitlines()[-1])
    assert "it does not come up" in last["probe"]["error"]


def test_who_watches_sees_a_fault_come_recover_and_pass() -> None:
    """Told at each change: active, healed and recovering, over with its effect; one that finds nothing is skipped."""
    storage, clock = MemoryStorage(), SystemClock()
    storage.makedirs("/run")
    told: list[tuple[list[tuple[str, bool]], list[tuple[str, str]]]] = []

    def changed() -> None:
        lasting = [(each.fault, each.healed) for each in injector.lasting]
        told.append((lasting, [(each.fault, each.effect) for each in injector.past]))

    injector = Injector(FakeCluster(), clock, storage, RECORD, lambda _: None, changed)
    schedule = Schedule(3, (Injection(0.0, "kill-leader", 0.01, {"partition": 1}),))
    asyncio.run(injector.run(schedule, clock.monotonic_ms()))
    assert told == [
        ([("kill-leader", False)], []),
        ([("kill-leader", True)], []),
        ([], [("kill-leader", "bit")]),
    ]
    (past,) = injector.past
    assert "leader of" in past.target and past.start_ns < past.end_ns and past.detail.startswith("healed")


def test_what_comes_too_late_is_left_out_unless_its_kind_has_not_bitten() -> None:
    """A slow machine does not make a run longer than its kinds need, and a fault that never bites is given up."""
    storage, clock = MemoryStorage(), FastClock()
    storage.makedirs("/run")
    said: list[str] = []
    cluster = FakeCluster()
    cluster.retries_after_cut = False
    injector = Injector(cluster, clock, storage, RECORD, said.append)
    kinds = ("kill-leader", "kill-leader", *["drop-response"] * 5, "kill-follower", "kill-follower")
    schedule = Schedule(3, tuple(Injection(0.0, kind, 0.01) for kind in kinds))
    asyncio.run(injector.run(schedule, clock.monotonic_ms(), until_ms=clock.monotonic_ms()))
    record = [json.loads(line) for line in storage.read(RECORD).decode().splitlines()]
    assert [entry["fault"] for entry in record if entry["phase"] == "inject"] == [
        "kill-leader", *["drop-response"] * 3, "kill-follower",
    ]  # fmt: skip
    assert said[-1].startswith("4 planned faults were left out")


def test_one_fault_that_is_left_out_is_told_in_the_singular() -> None:
    """One fault is left out because its kind had bitten."""
    storage, clock, said = MemoryStorage(), FastClock(), list[str]()
    storage.makedirs("/run")
    injector = Injector(FakeCluster(), clock, storage, RECORD, said.append)
    schedule = Schedule(3, (Injection(0.0, "kill-leader", 0.01), Injection(0.0, "kill-leader", 0.01)))
    asyncio.run(injector.run(schedule, clock.monotonic_ms(), until_ms=clock.monotonic_ms()))
    assert said[-1] == "1 planned fault was left out: the time was up, and its kind had bitten"


def test_what_is_broken_when_a_run_ends_early_is_healed_and_the_rest_left_out() -> None:
    """Long before its time; each planned injection has its end in the record, so none is missed by the verdict."""
    storage, clock = MemoryStorage(), SystemClock()
    storage.makedirs("/run")
    said: list[str] = []
    schedule = Schedule(
        3,
        (
            Injection(0.0, "kill-leader", 60.0),
            Injection(0.0, "kill-leader", 1.0),
            Injection(90.0, "kill-follower", 1.0),
        ),
    )

    async def conduct() -> None:
        begun = asyncio.Event()
        injector = Injector(FakeCluster(), clock, storage, RECORD, said.append, begun.set)
        playing = asyncio.create_task(injector.run(schedule, clock.monotonic_ms()))
        await begun.wait()
        injector.end_early()
        await playing
        assert (injector.done, injector.left_out, injector.lasting) == (1, 2, ())

    asyncio.run(asyncio.wait_for(conduct(), 10))
    record = [json.loads(line) for line in storage.read(RECORD).decode().splitlines()]
    assert [(each["number"], each["phase"]) for each in record] == [
        (0, "inject"),
        (0, "heal"),
        (1, "left-out"),
        (2, "left-out"),
    ]
    assert fault_record(record, planned=3).complaints == ()
    assert said[-1] == "2 planned faults were left out: the run ended early"


def test_faults_wait_for_those_before_unless_they_overlap() -> None:
    """Composed faults run at once, all others one after the other."""
    apart = conduct(
        FakeCluster(),
        Injection(0.0, "cut-link", 0.05, {"link": "followers"}),
        Injection(0.0, "kill-leader", 0.01, {"partition": 0}),
    )
    assert [entry["fault"] for entry in apart] == ["cut-link", "cut-link", "kill-leader", "kill-leader"]
    together = conduct(
        FakeCluster(),
        Injection(0.0, "cut-link", 0.6, {"link": "followers"}, {"direction": "response", "lossless": True}),
        Injection(0.0, "kill-leader", 0.01, {"partition": 0}, overlap=True),
    )
    assert [entry["fault"] for entry in together] == ["kill-leader", "kill-leader", "cut-link", "cut-link"]


def test_a_fault_without_its_precondition_is_skipped_with_the_reason() -> None:
    """No leader, no kill; the record says why."""
    cluster = FakeCluster()
    for process in cluster.processes.values():
        process.running = False
    record = conduct_with_little_patience(cluster, Injection(0.0, "kill-leader", 0.01, {"partition": 1}))
    assert record[0]["phase"] == "skip"
    assert "no leader" in str(record[0]["probe"])
    assert record[0]["effective"] is False


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_fault_that_was_slow_to_pass_is_looked_at_again(comes_back: bool) -> None:
    """When all is healed, only what was not seen to be over; the record says what is seen of it then."""

    class Slow(FakeCluster):
        is_slow = True

        async def in_sync(self) -> bool:
            return not self.is_slow and await super().in_sync()

    storage, cluster, clock = MemoryStorage(), Slow(), FastClock()
    storage.makedirs("/run")
    injector = Injector(cluster, clock, storage, RECORD, lambda _: None)
    faults = (Injection(0.0, "kill-follower", 0.01, {"partition": 1}), Injection(0.0, "cut-link", 0.01))

    async def conduct() -> None:
        await injector.run(Schedule(3, faults), clock.monotonic_ms())
        cluster.is_slow = not comes_back
        await injector.look_again()
        await injector.look_again()

    asyncio.run(conduct())
    record = [json.loads(line) for line in storage.read(RECORD).decode().splitlines()]
    assert [(line["number"], line["phase"], line.get("healed")) for line in record if "healed" in line] == [
        (0, "heal", False), (1, "heal", True), (0, "over", comes_back),
    ]  # fmt: skip
    slow, quick = fault_record(record, 2).injected
    assert (slow.healed, slow.late, slow.effective) == (False, comes_back, True) and quick.healed


def test_a_fault_that_fails_halfway_has_its_deeds_in_the_record() -> None:
    """The verdict goes by them, whether or not the rest of the fault went as it should."""

    class Broken(FakeOrders):
        async def elect_unclean(self, topic: str, partition: int) -> str:
            raise OSError("no answer that anyone could read")

    storage, clock, cluster = MemoryStorage(), SystemClock(), FakeCluster()
    storage.makedirs("/run")
    cluster.orders = Broken(cluster.topic, cluster.partitions, cluster.broker_ids, cluster.machines)
    injector = Injector(cluster, clock, storage, RECORD, lambda _: None)
    schedule = Schedule(3, (Injection(0.0, "elect-unclean", 0.01, {"partition": 0}),))
    asyncio.run(injector.run(schedule, clock.monotonic_ms()))
    begun = json.loads(storage.read(RECORD).decode().splitlines()[0])
    assert "no answer" in begun["probe"]["error"]
    assert begun["start_ns"] < begun["probe"]["ordered_ns"] < begun["end_ns"]


@pytest.mark.parametrize("name", sorted(name for name, fault in FAULTS.items() if fault.kills_load is None))
def test_a_fault_that_failed_before_it_broke_anything_does_not_end_the_schedule(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It did not bite. That its second probe knows nothing to compare with is no failure to undo it."""

    async def fail(self: object) -> None:
        raise OSError("no answer")

    monkeypatch.setattr(FAULTS[name], "inject", fail)
    storage, clock = MemoryStorage(), FastClock()
    storage.makedirs("/run")
    injector = Injector(FakeCluster(), clock, storage, RECORD, lambda _: None)

    async def conduct() -> None:
        await injector.inject(3, 0, Injection(0.0, name, 0.01, {"partition": 0}))
        await injector.look_again()

    asyncio.run(asyncio.wait_for(conduct(), 20))
    begun, healed, *_ = (json.loads(line) for line in storage.read(RECORD).decode().splitlines())
    assert "no answer" in begun["probe"]["error"] and healed["phase"] == "heal"
    assert not healed["effective"] and injector.lasting == ()
