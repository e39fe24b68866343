"""``kill-all``: SIGKILL every broker at the same moment, restart all of them after a while."""

from __future__ import annotations

from chaos.faults.base import Probe, until
from chaos.faults.kill_several import KillSeveral


class KillAll(KillSeveral):
    """Bites when all processes are gone and no broker answers; new leader epochs show it when they are back."""

    name = "kill-all"
    summary = "SIGKILL all brokers at once; restart them on their own data directories"
    least_brokers = 2

    async def choose(self) -> str:
        await self._begin()
        return f"brokers {', '.join(map(str, self.cluster.broker_ids))}, all at once"

    async def inject(self) -> None:
        await self._kill_at_once(self.cluster.broker_ids)

    async def bites(self) -> Probe:
        async def silent() -> bool:
            return not await self.cluster.alive()

        counted_dead = await until(silent, clock=self.clock, timeout_ms=self.patience_ms)
        return Probe(self._all_died and counted_dead, {"steps": self._steps, "counted_dead": counted_dead})
