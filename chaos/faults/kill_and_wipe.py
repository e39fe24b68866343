"""``kill-and-wipe``: SIGKILL the broker that leads a chosen partition, and let it come back with an empty disk.

Injected only while every replica is in sync and no other fault lasts, so that others have what it loses. Afterwards the
broker must fetch everything again before it may be elected, even if it was in the ISR before (KIP-903).
"""

from __future__ import annotations

from typing import ClassVar

from chaos.faults.base import Probe, Reach
from chaos.faults.kill_leader import KillLeader


class KillAndWipe(KillLeader):
    """Bites when the process and all of its data are gone, and another broker leads the partition.

    It is over when the broker has fetched data again, and every replica is in its ISR.
    """

    name = "kill-and-wipe"
    summary = "SIGKILL the broker that leads a partition, remove all of its data; restart it with an empty disk"
    reach: ClassVar[Reach] = "data"
    recovery_s = 6.0
    #: If another broker went away meanwhile, it could have the only copy of what is lost here.
    hits = "everything"
    loses_data = True
    needs_sync = True

    _lost_bytes = 0

    async def choose(self) -> str:
        target = await super().choose()
        await self._full_isrs()
        return target

    async def inject(self) -> None:
        await super().inject()
        if not await self._runs(self._broker_id):
            self._lost_bytes = await self.cluster.machine(self._broker_id).wipe()

    async def bites(self) -> Probe:
        seen = await super().bites()
        return Probe(seen.effective and self._lost_bytes > 0, {**seen.seen, "lost_bytes": self._lost_bytes})

    async def gone(self) -> Probe:
        seen = await super().gone()
        fetched_bytes = await self.cluster.machine(self._broker_id).held_bytes()
        return Probe(seen.effective and fetched_bytes > 0, {**seen.seen, "fetched_bytes": fetched_bytes})
