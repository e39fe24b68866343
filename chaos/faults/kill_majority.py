"""``kill-majority``: SIGKILL more than half of the brokers at the same moment, restart them after a while."""

from __future__ import annotations

from chaos.faults.base import Probe, until
from chaos.faults.kill_several import KillSeveral


class KillMajority(KillSeveral):
    """Bites when their processes are gone and those that are left no longer count them as alive."""

    name = "kill-majority"
    summary = "SIGKILL more than half of the brokers at once; restart them on their own data directories"

    async def choose(self) -> str:
        await self._begin()
        everyone = sorted(self.cluster.broker_ids)
        self._killed = sorted(self.random.sample(everyone, len(everyone) // 2 + 1))
        return f"brokers {', '.join(map(str, self._killed))}, at once"

    async def inject(self) -> None:
        await self._kill_at_once(self._killed)

    async def bites(self) -> Probe:
        async def noted() -> bool:
            alive = await self.cluster.alive()
            return bool(alive) and not alive & set(self._killed)

        counted_dead = await until(noted, clock=self.clock, timeout_ms=self.patience_ms)
        seen = {"steps": self._steps, "counted_dead": counted_dead, **await self._reacted()}
        return Probe(self._all_died and counted_dead, seen)
