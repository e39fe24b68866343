"""``isolate-broker``: cut all links of one broker, both ways: peers, clients and ZooKeeper."""

from __future__ import annotations

from typing import ClassVar

from chaos.faults.accepted import truth
from chaos.faults.base import Fault, Probe, Reach, until


class IsolateBroker(Fault):
    """Bites when the cluster no longer counts the broker as alive, though its process runs and answers."""

    name = "isolate-broker"
    summary = "cut every link of one broker (peers, clients, ZooKeeper) for longer than its session"
    reach: ClassVar[Reach] = "other-links"
    duration_s = (3.5, 5.0)
    recovery_s = 3.5
    least_brokers = 2
    accepts = (truth("lossless"),)

    async def choose(self) -> str:
        self._broker_id, _ = await self._leader()
        self._links = [name for name in self.cluster.link_names if f"b{self._broker_id}" in name.split("-")]
        return f"broker {self._broker_id}, leader of {self.cluster.topic}-{self._partition}, {len(self._links)} links"

    async def inject(self) -> None:
        lossless = bool(self.injection.parameters.get("lossless", True))
        await self.damage.cut(self._links, "both", lossless=lossless)

    async def bites(self) -> Probe:
        async def dropped() -> bool:
            alive = await self.cluster.alive()
            # an empty set means that no broker answered, not that this one is dead
            return bool(alive) and self._broker_id not in alive

        out = await until(dropped, clock=self.clock, timeout_ms=self.patience_ms)
        runs = await self.cluster.answers(self._broker_id, timeout_ms=1_000)
        moved = await self._moved_from(self._broker_id, 3_000)
        seen = {"broker": self._broker_id, "counted_dead": out, "runs": runs, "leader_moved": moved}
        return Probe(out and runs, seen)

    async def heal(self) -> None:
        await self.damage.heal()

    async def gone(self) -> Probe:
        clear = await self.damage.clear()
        rejoined = await self._rejoined()
        return Probe(clear and rejoined, {"links_clear": clear, "isr_full": rejoined})
