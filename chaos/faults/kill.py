"""The base of faults that kill one broker: SIGKILL, and a restart after a while. Does not own which broker.

A kill is like the crash of a process: written data survives in the page cache, but data that the process had buffered
is lost. The broker comes back on its own data directory, without the marker of a clean stop, and recovers its logs.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from chaos.faults.base import Fault, Probe, Reach


class Kill(Fault):
    """Bites when the process is gone and the cluster has noticed."""

    reach: ClassVar[Reach] = "processes"
    duration_s = (3.0, 5.0)
    recovery_s = 4.0
    least_brokers = 2

    _broker_id: int

    @abstractmethod
    async def noted(self) -> tuple[bool, Mapping[str, Any]]:
        """Whether the cluster has noticed, and the figures that show it. Waits for that for a limited time."""

    async def inject(self) -> None:
        self._pid = self.cluster.process(self._broker_id).pid
        await asyncio.to_thread(self.cluster.process(self._broker_id).kill)

    async def bites(self) -> Probe:
        dead = await self._has_ended(self._broker_id)
        noted, how = await self.noted()
        return Probe(dead and noted, {"broker": self._broker_id, "pid": self._pid, "dead": dead, **how})

    async def heal(self) -> None:
        # also if it is unknown whether it runs, since it was killed
        if not await self._runs(self._broker_id):
            await self.cluster.restart(self._broker_id)

    async def gone(self) -> Probe:
        rejoined = await self._rejoined()
        # checked separately, because ISRs are full even without a broker that has no replica
        running = await self._runs(self._broker_id)
        return Probe(rejoined and running, {"running": running, "isr_full": rejoined})
