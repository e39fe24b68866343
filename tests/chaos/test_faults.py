"""Each fault's life on a cluster of numbers: it bites, is undone, leaves nothing, and says so when it does not bite."""

from __future__ import annotations

import asyncio
import json

import pytest

from chaos.conductor.injector import Injector
from chaos.faults.catalogue import FAULTS
from chaos.schedules.model import Injection, Schedule
from cluster.seams.clock import SystemClock
from cluster.seams.memory_storage import MemoryStorage
from tests.chaos.fake_cluster import FakeCluster

RECORD = "/run/faults.jsonl"


def _conduct(cluster: FakeCluster, *injections: Injection) -> list[dict[str, object]]:
    """Work a schedule off and return the record."""
    storage = MemoryStorage()
    storage.makedirs("/run")
    clock = SystemClock()
    injector = Injector(cluster, clock, storage, RECORD, lambda _: None)
    asyncio.run(injector.run(Schedule(3, injections), clock.monotonic_ms()))
    assert injector.active == ""
    return [json.loads(line) for line in storage.read(RECORD).decode().splitlines()]


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_bites_and_leaves_nothing(name: str) -> None:
    """Injected, probed, healed, probed again; both steps are on record, and the cluster is whole afterwards."""
    cluster = FakeCluster()
    record = _conduct(cluster, Injection(0.0, name, 0.01, {"partition": 1}))
    assert [(entry["fault"], entry["phase"]) for entry in record] == [(name, "inject"), (name, "heal")]
    assert record[-1]["effective"] is True
    assert asyncio.run(cluster.in_sync())
    assert not cluster.links.cuts
    assert not cluster.links.stalled


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_that_does_nothing_is_seen_not_to_bite(name: str) -> None:
    """The probe looks at the cluster, not at what was asked of it."""
    cluster = FakeCluster()
    cluster.links.deaf = True
    for process in cluster.processes.values():
        process.deaf = True
    fault = FAULTS[name]
    patience = FakeCluster.session_timeout_ms + 6_000
    assert patience > 0
    record = _conduct_with_little_patience(cluster, Injection(0.0, name, 0.01, {"partition": 0}))
    assert record[-1]["effective"] is False, (fault, record)


def _conduct_with_little_patience(cluster: FakeCluster, injection: Injection) -> list[dict[str, object]]:
    """The same with a clock that runs a hundred times as fast, so that waits for what never comes are short."""
    storage = MemoryStorage()
    storage.makedirs("/run")

    class FastClock(SystemClock):
        def monotonic_ms(self) -> int:
            return super().monotonic_ns() // 10_000

    clock = FastClock()
    injector = Injector(cluster, clock, storage, RECORD, lambda _: None)
    asyncio.run(injector.run(Schedule(3, (injection,)), clock.monotonic_ms()))
    return [json.loads(line) for line in storage.read(RECORD).decode().splitlines()]


def test_drop_response_needs_a_retry_to_have_bitten() -> None:
    """An answer that was lost and never asked for again proves nothing."""
    cluster = FakeCluster()
    cluster.retries_after_cut = False
    record = _conduct_with_little_patience(cluster, Injection(0.0, "drop-response", 0.01, {"partition": 0}))
    assert record[0]["effective"] is True
    assert record[-1]["effective"] is False


def test_faults_wait_for_those_before_unless_they_overlap() -> None:
    """Composed faults run at once, all others one after the other."""
    apart = _conduct(
        FakeCluster(),
        Injection(0.0, "cut-link", 0.05, {"link": "followers"}),
        Injection(0.0, "kill-leader", 0.01, {"partition": 0}),
    )
    assert [entry["fault"] for entry in apart] == ["cut-link", "cut-link", "kill-leader", "kill-leader"]
    together = _conduct(
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
    record = _conduct_with_little_patience(cluster, Injection(0.0, "kill-leader", 0.01, {"partition": 1}))
    assert record[0]["phase"] == "skip"
    assert "no leader" in str(record[0]["probe"])
    assert record[0]["effective"] is False
