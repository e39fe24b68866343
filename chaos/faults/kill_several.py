"""What faults share that kill several brokers: who was killed and seen dead, and that all of them come back.

Owns that, and the count of the cluster's reaction. Who is killed, and when, is each fault's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from chaos.faults.base import Fault, Probe, Reach
from chaos.faults.reaction import ClusterReaction


class KillSeveral(Fault):
    """It is over when every broker runs, every replica is in its ISR, and leader epochs and ISRs have changed.

    A kill leaves the page cache, so however many die at once, no replica loses what it had written.
    """

    reach: ClassVar[Reach] = "processes"
    duration_s = (3.0, 5.0)
    recovery_s = 6.0
    least_brokers = 3
    least_replicas = 2
    hits = "everything"

    _steps: list[dict[str, Any]]
    _before: ClusterReaction

    async def _begin(self) -> None:
        """Look at the cluster before it is broken. Raises PreconditionMissing if a broker is down already."""
        await self._all_run()
        self._steps = []
        self._before = await self.cluster.reaction()

    async def _kill(self, broker_id: int) -> None:
        """SIGKILL, and a step that says which process it was and whether it is gone."""
        process = self.cluster.process(broker_id)
        await asyncio.to_thread(process.kill)
        self._steps.append({"broker": broker_id, "pid": process.pid, "dead": await self._has_ended(broker_id)})

    async def _kill_at_once(self, broker_ids: Iterable[int]) -> None:
        await asyncio.gather(*map(self._kill, broker_ids))

    @property
    def _all_died(self) -> bool:
        return bool(self._steps) and all(step["dead"] for step in self._steps)

    async def _reacted(self) -> Mapping[str, Any]:
        """The cluster's reaction until now, for the record."""
        now = (await self.cluster.reaction()).since(self._before)
        return {**now.figures(), "truncations": now.truncations} if now.truncations else now.figures()

    async def heal(self) -> None:
        running = await self._running()
        dead = [each for each in self.cluster.broker_ids if each not in running]
        await asyncio.gather(*map(self.cluster.restart, dead))

    async def gone(self) -> Probe:
        rejoined = await self._rejoined()
        running = await self._running() == list(self.cluster.broker_ids)
        seen = {"running": running, "isr_full": rejoined, **await self._reacted()}
        return Probe(running and rejoined, seen)

    def bit(self, during: Probe, after: Probe) -> bool:
        """What was killed was seen dead, and the cluster had to elect: its journals tell that in the end at least."""
        return during.effective and after.seen.get("leader_epochs", 0) > 0
