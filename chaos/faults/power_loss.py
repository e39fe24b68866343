"""``power-loss``: the machine of a partition's leader loses power, and gets it back.

Harder than a kill, because the page cache is lost, too. Of each file's unsynced bytes, all, some or none are left, and
files whose names were not synced are gone (``cluster.seams.power_loss``). Injected only while every replica is in sync,
so that others have what it loses. Without a sync after each append, neither Kafka nor gapless promises more
(docs/faults.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from chaos.faults.base import Probe, Reach
from chaos.faults.kill_leader import KillLeader


class PowerLoss(KillLeader):
    """Bites when bytes were lost, the process is gone and another broker leads the partition."""

    name = "power-loss"
    summary = "kill a partition's leader and remove what it had not synced from its disk; restart it"
    reach: ClassVar[Reach] = "machines"
    recovery_s = 5.0
    #: If another broker went away meanwhile, it could have the only copy of what is lost here.
    hits = "everything"
    loses_data = True
    needs_sync = True
    needs_fault_port = True

    _lost_bytes = 0

    async def choose(self) -> str:
        target = await super().choose()
        await self._full_isrs()
        return target

    @property
    def _word(self) -> str:
        """A text that the paths of the affected files contain; "" affects all files."""
        return ""

    async def inject(self) -> None:
        self._pid = self.cluster.process(self._broker_id).pid
        seed = self.random.randrange(2**32)
        self._lost_bytes = await self.cluster.machine(self._broker_id).lose_power(seed, self._word)

    async def bites(self) -> Probe:
        seen = await super().bites()
        lost: Mapping[str, Any] = {"lost_bytes": self._lost_bytes}
        return Probe(seen.effective and self._lost_bytes > 0, {**seen.seen, **lost})

    async def gone(self) -> Probe:
        seen = await super().gone()
        loaded = await self.cluster.machine(self._broker_id).loaded()
        checked = loaded.get("clean") is False
        return Probe(seen.effective and checked, {**seen.seen, "verified_bytes": loaded.get("unflushed_bytes", 0)})
