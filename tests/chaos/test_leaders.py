"""What the conductor writes of leaders: changes alone, and between which two looks they came."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

from chaos.conductor.leaders import LeaderWatch
from chaos.conductor.observed_cluster import ObservedCluster, ObservedPartition
from cluster.seams.clock import ManualClock
from cluster.seams.memory_storage import MemoryStorage


def seen(leader: int, epoch: int, *isr: int) -> ObservedPartition:
    return ObservedPartition(leader, epoch, (1, 2, 3), isr)


def watch(views: list[Any], clock: ManualClock, storage: MemoryStorage) -> LeaderWatch:
    async def view() -> ObservedCluster:
        clock.advance_ms(3)
        found = views.pop(0)
        if isinstance(found, OSError):
            raise found
        return ObservedCluster(frozenset({1}), 1, found)

    storage.makedirs("/run")
    return LeaderWatch(SimpleNamespace(view=view), clock, storage, "/run/leaders.jsonl", "t")  # type: ignore[arg-type]


def test_only_changes_are_written() -> None:
    """A leader or an ISR that is another, each with when it was asked before; nothing for a look that failed."""
    clock, storage = ManualClock(), MemoryStorage()
    first, fewer, second = seen(1, 4, 1, 2), seen(1, 4, 1), seen(2, 5, 2)
    looks = [{0: first}, {0: first}, {0: fewer}, OSError("gone"), {0: second}]
    watcher = watch(looks, clock, storage)
    for _ in range(5):
        asyncio.run(watcher.look())
        clock.advance_ms(10)
    lines = [json.loads(line) for line in storage.read("/run/leaders.jsonl").decode().splitlines()]
    assert {(e["topic"], e["partition"]) for e in lines} == {("t", 0)}
    assert [(e["leader"], e["leader_epoch"], e["isr"], e["before_ns"], e["time_ns"]) for e in lines] == [
        (1, 4, [1, 2], None, 3_000_000),
        (1, 4, [1], 13_000_000, 29_000_000),
        (2, 5, [2], 26_000_000, 55_000_000),
    ]


def test_a_broker_that_has_not_heard_yet_is_no_news() -> None:
    """An older epoch after a newer one: whoever answered is behind."""
    clock, storage = ManualClock(), MemoryStorage()
    watcher = watch([], clock, storage)
    assert len(watcher.changes({0: seen(2, 5, 2)}, 0, 1)) == 1
    assert watcher.changes({0: seen(1, 4, 1)}, 10, 11) == []
    assert watcher.changes({0: seen(2, 5, 2)}, 20, 21) == []
