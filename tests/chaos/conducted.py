"""What came of injections on a cluster of numbers: the record, as the injector writes it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import cast

from chaos.conductor.injector import Injector
from chaos.schedules.model import Injection, Schedule
from cluster.seams.clock import SystemClock
from cluster.seams.memory_storage import MemoryStorage
from tests.chaos.fake_cluster import FakeCluster

RECORD = "/run/faults.jsonl"


class FastClock(SystemClock):
    """A hundred times as fast, so that waits for what never comes are short."""

    def monotonic_ns(self) -> int:
        return super().monotonic_ns() * 100

    def monotonic_ms(self) -> int:
        return self.monotonic_ns() // 1_000_000


def conduct(cluster: FakeCluster, *injections: Injection) -> list[dict[str, object]]:
    """Work a schedule off and return the record."""
    return _conducted(cluster, injections, SystemClock())


def conduct_with_little_patience(cluster: FakeCluster, injection: Injection) -> list[dict[str, object]]:
    """The same with a fast clock."""
    return _conducted(cluster, (injection,), FastClock())


def _conducted(cluster: FakeCluster, injections: Sequence[Injection], clock: SystemClock) -> list[dict[str, object]]:
    storage = MemoryStorage()
    storage.makedirs("/run")
    injector = Injector(cluster, clock, storage, RECORD, lambda _: None)
    asyncio.run(injector.run(Schedule(3, tuple(injections)), clock.monotonic_ms()))
    assert injector.active == ""
    return [json.loads(line) for line in storage.read(RECORD).decode().splitlines()]


def probe_of(entry: dict[str, object]) -> dict[str, object]:
    """What the probe saw, of one line of the record."""
    return cast(dict[str, object], entry["probe"])
