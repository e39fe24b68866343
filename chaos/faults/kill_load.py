"""The base of faults that kill one of several load processes for good.

Its clients vanish without closing anything: connections break, batches in flight have no outcome, and the history ends
with the last flushed rows. These rows remain evidence. Records that the process had reserved sequences for, but had not
recorded, may be in the logs or not. Each process writes one history, so no other process takes over its streams. Does
not own which part of the load is hit: each fault does.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod

from chaos.faults.base import PreconditionMissing, Probe, until
from chaos.faults.breakable import LoadPart
from chaos.faults.load_fault import LoadFault

#: Much longer than a second, since processes write their figures once a second.
_WORKS_MS = 30_000
_LOOK_MS = 200.0


class KillLoad(LoadFault):
    """Bites when a process that had written or read records is gone. It is over when the others make progress."""

    duration_s = (1.5, 2.5)
    recovery_s = 2.0
    targets = ("partition", "process")
    #: A second kill could leave no process to do the work.
    once = True

    @property
    @abstractmethod
    def part(self) -> LoadPart:
        """The part of the load whose processes it kills."""

    @abstractmethod
    async def done(self, name: str) -> int:
        """How many records the process has written or read, according to its latest figures."""

    async def choose(self) -> str:
        names = sorted(self._load.processes(self.part))
        if len(names) < 2:
            raise PreconditionMissing(f"fewer than two processes of {self.part} run")
        wanted = self.injection.target.get("process")
        if wanted not in (None, *names):
            raise PreconditionMissing(f"no process {wanted} of the load runs")
        self._name = str(wanted or self.random.choice(names))
        self._others = [name for name in names if name != self._name]
        if not await self.done(self._name):
            raise PreconditionMissing(f"{self._name} has done nothing yet")
        return f"load process {self._name}"

    async def inject(self) -> None:
        self._records = await self.done(self._name)
        self._pid = self._load.process(self._name).pid
        await self._load.kill(self._name)

    async def bites(self) -> Probe:
        dead = not self._load.process(self._name).is_running()
        seen = {"process": self._name, "pid": self._pid, "dead": dead, "records_before": self._records}
        return Probe(dead and self._records > 0, seen)

    async def heal(self) -> None:
        """Undo nothing, because the process stays dead. Note the progress of the others."""
        self._at_heal = await self._done_by_others()

    async def gone(self) -> Probe:
        records = 0

        async def more() -> bool:
            nonlocal records
            records = await self._done_by_others() - self._at_heal
            return records > 0

        works = await until(more, clock=self.clock, timeout_ms=_WORKS_MS, interval_ms=_LOOK_MS)
        return Probe(works, {"records_of_others": records})

    async def _done_by_others(self) -> int:
        return sum(await asyncio.gather(*map(self.done, self._others)))
