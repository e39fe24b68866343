"""``restart-zookeeper``: SIGKILL ZooKeeper, and start it again on its data directory and its port after a while.

Sessions survive it if it is back in time: ZooKeeper keeps them with its data and gives each its full time again.
"""

from __future__ import annotations

import asyncio

from chaos.faults.base import Fault, PreconditionMissing, Probe
from chaos.faults.zookeeper_probe import ZooKeeperProbe


class RestartZookeeper(Fault):
    """Bites when the process is gone and nothing serves at its address."""

    name = "restart-zookeeper"
    summary = "SIGKILL ZooKeeper; start it again on its data directory and its port"
    duration_s = (0.5, 4.0)
    recovery_s = 6.0
    hits = "zookeeper"

    async def choose(self) -> str:
        found = self.cluster.zookeeper()
        if found is None:
            raise PreconditionMissing("ZooKeeper is not this run's own (--zookeeper), so it cannot be restarted")
        if not found.is_running():
            raise PreconditionMissing("ZooKeeper does not run")
        self._process = found
        return f"ZooKeeper, pid {found.pid}"

    async def inject(self) -> None:
        self._probe = await ZooKeeperProbe.before(self.cluster)
        await asyncio.to_thread(self._process.kill)

    async def bites(self) -> Probe:
        dead = not self._process.is_running()
        silent = not await self.cluster.zookeeper_answers(timeout_ms=200)
        return Probe(dead and silent, {"pid": self._process.pid, "dead": dead, "silent": silent})

    async def heal(self) -> None:
        if not self._process.is_running():
            await self.cluster.restart_zookeeper()

    async def gone(self) -> Probe:
        served = await self._probe.serves_again(self.cluster, self.clock)
        rejoined = await self._rejoined()
        seen = await self._probe.after(self.cluster, self.clock, expect_expiry=False)
        return Probe(served and rejoined, {"answers": served, "isr_full": rejoined, **seen})
