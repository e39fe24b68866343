"""``restart-storm``: SIGKILL one broker after the other and restart each at once, without waiting for any ISR.

What a crash loop or an impatient operator does. A broker may die again before it has caught up, or take the leadership
just before its turn comes.
"""

from __future__ import annotations

from chaos.faults.accepted import integer
from chaos.faults.base import Probe
from chaos.faults.kill_several import KillSeveral

#: The bounds of the drawn number of kills.
_ROUNDS = (3, 5)


class RestartStorm(KillSeveral):
    """Bites when each process was gone in its turn, and leader epochs and ISRs changed."""

    name = "restart-storm"
    summary = "SIGKILL random brokers one after the other, restarting each at once without waiting for its ISRs"
    #: Long, because a broker that comes back waits for the end of its previous session.
    duration_s = (10.0, 14.0)
    accepts = (integer("rounds", 2, 20),)

    async def choose(self) -> str:
        await self._begin()
        rounds = self.injection.parameters.get("rounds") or self.random.randint(*_ROUNDS)
        everyone = sorted(self.cluster.broker_ids)
        self._turns = [self.random.choice(everyone) for _ in range(rounds)]
        named = ", ".join(map(str, sorted(set(self._turns))))
        order = "-".join(map(str, self._turns))
        return f"broker{'s' * (len(set(self._turns)) > 1)} {named}, killed in the order {order}"

    async def inject(self) -> None:
        for broker_id in self._turns:
            await self._kill(broker_id)
            await self.cluster.restart(broker_id)

    async def bites(self) -> Probe:
        reacted = await self._reacted()
        is_whole = len(self._steps) == len(self._turns) and self._all_died
        # brokers that gapless did not start report no ISR changes, so their leader epochs must show it
        changed = reacted.get("isr_changes", 1) > 0
        return Probe(is_whole and changed, {"steps": self._steps, **reacted})
