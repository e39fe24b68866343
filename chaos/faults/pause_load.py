"""The base of faults that pause a load process: SIGSTOP until coordinators have given up on its clients, then SIGCONT.

The process stops while its clients have connections, transactions and partitions open. It wakes up as a zombie that
does not know that its transactions and partitions are gone. Does not own which clients a coordinator gives up on, or
what shows it: each fault does.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import Any

from chaos.faults.base import PreconditionMissing, Probe
from chaos.faults.breakable import LoadPart
from chaos.faults.load_fault import LoadFault


class PauseLoad(LoadFault):
    """Bites when the process is stopped, and a coordinator has given up on at least one of its clients."""

    targets = ("partition", "process")

    @property
    @abstractmethod
    def part(self) -> LoadPart:
        """The part of the load whose processes it stops."""

    async def choose(self) -> str:
        names = sorted(self._load.processes(self.part))
        wanted = self.injection.target.get("process")
        if not names or wanted not in (None, *names):
            raise PreconditionMissing(f"no process {wanted or f'of {self.part}'} of the load runs")
        self._name = str(wanted or self.random.choice(names))
        await self.look_before()
        return f"load process {self._name}"

    async def inject(self) -> None:
        self._pid = self._load.process(self._name).pid
        await asyncio.to_thread(self._load.process(self._name).suspend)
        await self.look_after()

    async def bites(self) -> Probe:
        stopped = self._load.process(self._name).is_suspended()
        given_up = await self.given_up() if stopped else {}
        seen = {"process": self._name, "pid": self._pid, "stopped": stopped, **given_up}
        return Probe(stopped and any(given_up.values()), seen)

    async def heal(self) -> None:
        await asyncio.to_thread(self._load.process(self._name).resume)

    async def gone(self) -> Probe:
        stopped = self._load.process(self._name).is_suspended()
        is_back, seen = await self.back()
        return Probe(not stopped and is_back, {"stopped": stopped, **seen})

    async def look_before(self) -> None:
        """Called before the process is stopped, to note what the probe needs. Raises PreconditionMissing."""

    async def look_after(self) -> None:
        """Called right after the process is stopped, to note what the probe needs."""

    @abstractmethod
    async def given_up(self) -> dict[str, Any]:
        """Figures on how many of its clients coordinators gave up on. Waits for that for a limited time."""

    @abstractmethod
    async def back(self) -> tuple[bool, dict[str, Any]]:
        """Whether its clients work again, and the figures that show it. Waits for that for a limited time."""
