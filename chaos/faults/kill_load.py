"""What the kills of load processes share: SIGKILL one of several, which does not come back. Owns that.

Clients end without a word: connections break, batches in flight have no outcome, a history ends where its last rows
were flushed. What it has remains evidence; what its process had reserved and not noted may be in the logs or not. A
process has one history, so no other takes its place, and its streams end.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod

from chaos.faults.base import PreconditionMissing, Probe, until
from chaos.faults.breakable import LoadPart
from chaos.faults.load_fault import LoadFault

#: Processes write their figures once a second.
_WORKS_MS = 30_000
_LOOK_MS = 200.0


class KillLoad(LoadFault):
    """Bites when a process that had done something is gone; it is over when the others do more, without it."""

    duration_s = (1.5, 2.5)
    recovery_s = 2.0
    targets = ("partition", "process")
    #: The others must do the work.
    once = True

    @property
    @abstractmethod
    def part(self) -> LoadPart:
        """Whose processes it kills."""

    @abstractmethod
    async def done(self, name: str) -> int:
        """How many records the process has written or read, by its own latest figure."""

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
        """Nothing is undone: what is dead stays dead."""
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
