"""``zookeeper-from-one``: one broker loses ZooKeeper, for longer than its session, and nothing else.

Its session expires while it reaches all other brokers and clients: it is counted dead, and must learn from others that
it leads nothing anymore.
"""

from __future__ import annotations

import asyncio

from chaos.faults.accepted import truth
from chaos.faults.base import Fault, Probe, until
from chaos.faults.damage import stats_of
from chaos.faults.link_fault import NO_COUNTERS
from chaos.faults.zookeeper_fault import EXPIRED

_ANSWER_MS = 3_000
_AGAIN_MS = 3_000


class ZookeeperFromOne(Fault):
    """Bites when what the broker sends to ZooKeeper was held or dropped and the cluster counts it as dead, although
    the other brokers reach it."""

    name = "zookeeper-from-one"
    summary = "cut the link between one broker, a partition's leader, and ZooKeeper for longer than its session"
    duration_s = (3.5, 5.0)
    recovery_s = 3.5
    least_brokers = 2
    accepts = (truth("lossless"),)

    async def choose(self) -> str:
        self._broker_id, _ = await self._leader()
        self._link = f"b{self._broker_id}-zk"
        self._lossless = bool(self.injection.parameters.get("lossless", self.random.random() < 0.5))
        return f"{self._link}, {'lossless' if self._lossless else 'lossy'}"

    async def inject(self) -> None:
        self._expired_before = await self.cluster.journaled(EXPIRED)
        self._before = await stats_of(self.cluster.links, [self._link])
        await self.damage.cut([self._link], "both", lossless=self._lossless)

    async def bites(self) -> Probe:
        seen: dict[str, object] = {"link": self._link, "lossless": self._lossless}

        async def counted_dead() -> bool:
            return self._broker_id not in await self.cluster.alive()

        dead = await until(counted_dead, clock=self.clock, timeout_ms=self.patience_ms)
        stopped = await self._stopped(seen)
        running = [each for each in self.cluster.broker_ids if self.cluster.process(each).is_running()]
        peers = [f"b{each}-b{self._broker_id}" for each in running if each != self._broker_id]
        pings = await asyncio.gather(*(self.cluster.links.ping(link, timeout_ms=_ANSWER_MS) for link in peers))
        reached = sum(took_ms is not None for took_ms in pings)
        moved = await self._moved_from(self._broker_id, 3_000)
        seen |= {"counted_dead": dead, "pings_elsewhere": reached, "leader_moved": moved}
        return Probe(dead and stopped and reached == len(peers), seen)

    async def _stopped(self, seen: dict[str, object]) -> bool:
        now = await stats_of(self.cluster.links, [self._link])
        if now is None or self._before is None:
            seen["counters"] = NO_COUNTERS
            return await self.damage.in_place()
        before = self._before[0].dropped_request_bytes
        stopped = now[0].held_bytes if self._lossless else now[0].dropped_request_bytes - before
        seen["held_bytes" if self._lossless else "dropped_bytes"] = stopped
        return stopped > 0

    async def heal(self) -> None:
        await self.damage.heal()

    async def gone(self) -> Probe:
        clear = await self.damage.clear()
        rejoined = await self._rejoined()

        async def expired() -> bool:
            return await self.cluster.journaled(EXPIRED) > self._expired_before

        await until(expired, clock=self.clock, timeout_ms=_AGAIN_MS, interval_ms=500)
        lost = await self.cluster.journaled(EXPIRED) - self._expired_before
        return Probe(clear and rejoined, {"link_clear": clear, "isr_full": rejoined, "sessions_expired": lost})
