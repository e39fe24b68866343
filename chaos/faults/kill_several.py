"""The base of faults that kill several brokers: records who was killed and is dead, and restarts all of them.

Also records how the cluster reacted. Does not own which brokers are killed, or when: each fault does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from chaos.faults.base import Fault, Probe, Reach
from chaos.faults.reaction import ClusterReaction


class KillSeveral(Fault):
    """It is over when every broker runs and every replica is in its ISR. It bit only if new leader epochs began.

    The page cache survives a kill, so no replica loses what it had written, even if all brokers die at once.
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
        """Note the state of the cluster before the fault. Raises PreconditionMissing if a broker is down already."""
        await self._all_run()
        self._steps = []
        self._before = await self.cluster.reaction()

    async def _kill(self, broker_id: int) -> None:
        """SIGKILL a broker, and record which process it was and whether it is dead."""
        process = self.cluster.process(broker_id)
        await asyncio.to_thread(process.kill)
        self._steps.append({"broker": broker_id, "pid": process.pid, "dead": await self._has_ended(broker_id)})

    async def _kill_at_once(self, broker_ids: Iterable[int]) -> None:
        await asyncio.gather(*map(self._kill, broker_ids))

    @property
    def _all_died(self) -> bool:
        return bool(self._steps) and all(step["dead"] for step in self._steps)

    async def _reacted(self) -> Mapping[str, Any]:
        """The cluster's reaction so far, for the record."""
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
        """Also requires new leader epochs, which the second probe sees at the latest."""
        return during.effective and after.seen.get("leader_epochs", 0) > 0
