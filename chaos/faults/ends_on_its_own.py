"""What faults share after which the leader of a partition ends on its own: it must not continue, and others take over.

Owns that its process is seen to end, for the right reason, and that it is started again. What is done to it, and how
it shows that this was the reason, is each fault's own.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from chaos.faults.base import Fault, Probe, Reach, until
from chaos.faults.machine import Machine


class EndsOnItsOwn(Fault):
    """Bites when the broker met the reason, its process ended, and another broker leads the partition."""

    reach: ClassVar[Reach] = "machines"
    duration_s = (3.0, 5.0)
    recovery_s = 4.0
    least_brokers = 2
    least_replicas = 2
    needs_fault_port = True
    #: How long it may take until the broker meets the reason, and then until the process has ended.
    end_ms: ClassVar[int] = 15_000

    _pid = -1

    @abstractmethod
    async def _break(self, machine: Machine) -> None:
        """Give the broker a reason to end."""

    @abstractmethod
    async def _repair(self, machine: Machine) -> None:
        """Take the reason away from a process that has not ended. Raises ``OSError`` if it does so meanwhile."""

    @abstractmethod
    async def _met(self, machine: Machine) -> int:
        """How often the broker has met the reason, over all of its lives."""

    @abstractmethod
    def _reason(self, met: int) -> Mapping[str, object]:
        """For the record: what the reason was, and how often it was met."""

    async def choose(self) -> str:
        self._broker_id, _ = await self._leader()
        return f"broker {self._broker_id}, leader of {self.cluster.topic}-{self._partition}"

    async def inject(self) -> None:
        machine = self.cluster.machine(self._broker_id)
        self._pid = self.cluster.process(self._broker_id).pid
        self._met_before = await self._met(machine)
        await self._break(machine)

    async def bites(self) -> Probe:
        async def ended() -> bool:
            return await self._has_ended(self._broker_id)

        dead = await until(ended, clock=self.clock, timeout_ms=self.end_ms)
        met = await self._met(self.cluster.machine(self._broker_id)) - self._met_before
        moved = await self._moved_from(self._broker_id, self.patience_ms if dead else 0)
        which = {"broker": self._broker_id, "pid": self._pid}
        return Probe(met > 0 and dead and moved, {**which, **self._reason(met), "dead": dead, "leader_moved": moved})

    async def heal(self) -> None:
        if await self._runs(self._broker_id) and self.cluster.process(self._broker_id).pid == self._pid:
            try:
                await self._repair(self.cluster.machine(self._broker_id))
            except OSError:
                await asyncio.sleep(0.5)  # it is ending
        if not await self._runs(self._broker_id):
            await self.cluster.restart(self._broker_id)
