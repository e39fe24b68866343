"""``zookeeper-from-one``: one broker cannot reach ZooKeeper for longer than its session, but reaches everything else.

Unlike ``expire-session``, whose probes of session and registration it uses, this is a network partition: bytes may be
lost, and the probe shows that every peer still reaches the broker.
"""

from __future__ import annotations

import asyncio

from chaos.faults.accepted import truth
from chaos.faults.base import Probe
from chaos.faults.damage import stats_of
from chaos.faults.expire_session import ExpireSession
from chaos.faults.link_fault import NO_COUNTERS

_ANSWER_MS = 3_000


class ZookeeperFromOne(ExpireSession):
    """Bites when ``expire-session`` would, the broker's bytes to ZooKeeper were stopped, and all peers reach it."""

    name = "zookeeper-from-one"
    summary = "cut the link between one broker, a partition's leader, and ZooKeeper for longer than its session"
    accepts = (truth("lossless"),)

    async def choose(self) -> str:
        await super().choose()
        self._lossless = bool(self.injection.parameters.get("lossless", self.random.random() < 0.5))
        return f"{self._link}, {'lossless' if self._lossless else 'lossy'}"

    async def inject(self) -> None:
        self._before = await stats_of(self.cluster.links, [self._link])
        await super().inject()

    async def bites(self) -> Probe:
        dead = await super().bites()
        seen = {**dead.seen, "lossless": self._lossless}
        stopped = await self._stopped(seen)
        running = await self._running()
        peers = [f"b{each}-b{self._broker_id}" for each in running if each != self._broker_id]
        pings = await asyncio.gather(*(self.cluster.links.ping(link, timeout_ms=_ANSWER_MS) for link in peers))
        seen["pings_elsewhere"] = reached = sum(took_ms is not None for took_ms in pings)
        return Probe(dead.effective and stopped and reached == len(peers), seen)

    async def _stopped(self, seen: dict[str, object]) -> bool:
        now = await stats_of(self.cluster.links, [self._link])
        if now is None or self._before is None:
            seen["counters"] = NO_COUNTERS
            return await self.damage.in_place()
        before = self._before[0].dropped_request_bytes
        stopped = now[0].held_bytes if self._lossless else now[0].dropped_request_bytes - before
        seen["held_bytes" if self._lossless else "dropped_bytes"] = stopped
        return stopped > 0
