"""A cluster that exists only as numbers, for tests of faults and of the injector. Time passes when it is slept."""

from __future__ import annotations

from dataclasses import dataclass, field

from chaos.faults.base import LinkStats
from cluster.process.topology import link_names


@dataclass
class FakeProcess:
    """A broker's process as flags; ``deaf`` makes kills and stops do nothing, as a fault that does not bite."""

    pid: int
    deaf: bool = False
    running: bool = True
    suspended: bool = False

    def is_running(self) -> bool:
        return self.running

    def kill(self) -> None:
        self.running = self.deaf

    def suspend(self) -> None:
        self.suspended = not self.deaf

    def resume(self) -> None:
        self.suspended = False

    def is_suspended(self) -> bool:
        return self.suspended


@dataclass
class FakeLinks:
    """Links that carry 100 bytes each way whenever they are looked at, unless they are cut."""

    cuts: dict[str, tuple[str, bool]] = field(default_factory=dict)
    stalled: set[str] = field(default_factory=set)
    counted: dict[str, list[int]] = field(default_factory=dict)
    deaf: bool = False

    async def cut(self, link: str, direction: str, *, lossless: bool) -> None:
        if not self.deaf:
            self.cuts[link] = (direction, lossless)

    async def heal(self, link: str) -> None:
        self.cuts.pop(link, None)
        self.stalled.discard(link)

    async def is_clear(self, link: str) -> bool:
        return link not in self.cuts and link not in self.stalled

    async def stall(self, link: str, *, probability: float, min_ms: int, max_ms: int) -> str:
        if not self.deaf:
            self.stalled.add(link)
        return "stall"

    async def stats(self, link: str) -> LinkStats | None:
        counted = self.counted.setdefault(link, [100, 100, 0, 0, 0])
        direction, lossless = self.cuts.get(link, ("", True))
        for index, name in enumerate(("request", "response")):
            if direction in (name, "both"):
                counted[index + 2] += 0 if lossless else 100
            else:
                counted[index] += 100
        counted[4] = int(link in self.stalled)
        return LinkStats(*counted)


class FakeCluster:
    """Three brokers; the leader and the controller are the lowest of those that are reachable."""

    topic = "gapless"
    partitions = 2
    session_timeout_ms = 100

    def __init__(self) -> None:
        self.broker_ids = (1, 2, 3)
        self.links = FakeLinks()
        self.link_names = tuple(str(name) for name in link_names(self.broker_ids, ("producers", "readers")))
        self.processes = {broker_id: FakeProcess(1000 + broker_id) for broker_id in self.broker_ids}
        self.counters = {"gapless_produce_retries_total": 0.0, "gapless_produce_batches_total": 0.0}
        self.retries_after_cut = True

    def _reachable(self) -> list[int]:
        return [
            broker_id
            for broker_id, process in self.processes.items()
            if process.running and not process.suspended and f"b{broker_id}-zk" not in self.links.cuts
        ]

    def process(self, broker_id: int) -> FakeProcess:
        return self.processes[broker_id]

    async def restart(self, broker_id: int) -> None:
        self.processes[broker_id] = FakeProcess(2000 + broker_id)

    async def leader(self, partition: int) -> tuple[int, int] | None:
        reachable = self._reachable()
        return (reachable[0], 7) if reachable else None

    async def controller(self) -> int | None:
        reachable = self._reachable()
        return reachable[0] if reachable else None

    async def alive(self) -> frozenset[int]:
        return frozenset(self._reachable())

    async def in_sync(self) -> bool:
        return len(self._reachable()) == len(self.broker_ids)

    async def answers(self, broker_id: int, timeout_ms: int) -> bool:
        process = self.processes[broker_id]
        return process.running and not process.suspended

    async def counter(self, broker_id: int, name: str) -> float | None:
        if "producers-b1" in self.links.cuts:
            self.counters["gapless_produce_batches_total"] += 1
            self.counters["gapless_produce_retries_total"] += self.retries_after_cut
        return self.counters[name]
