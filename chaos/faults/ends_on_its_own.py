"""The base of faults that give a broker a reason to exit: the leader of a partition must exit, and others take over.

Checks that its process exits, and that it met the reason; then restarts it. Does not own what the reason is, or what
shows that the broker met it: each fault does.
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
    #: How long it may take until the broker has met the reason and its process has ended.
    end_ms: ClassVar[int] = 15_000

    _pid = -1

    @abstractmethod
    async def _break(self, machine: Machine) -> None:
        """Give the broker a reason to exit."""

    @abstractmethod
    async def _repair(self, machine: Machine) -> None:
        """Remove the reason, if the process still runs. Raises ``OSError`` if it exits meanwhile."""

    @abstractmethod
    async def _met(self, machine: Machine) -> int:
        """How often this broker has met the reason, over all of its processes."""

    @abstractmethod
    def _reason(self, met: int) -> Mapping[str, object]:
        """The reason and how often it was met, for the record."""

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
                await asyncio.sleep(0.5)  # the process is exiting
        if not await self._runs(self._broker_id):
            await self.cluster.restart(self._broker_id)
