"""The base of faults with a failing disk: calls to the leader's disk fail, and its broker must exit.

A broker whose disk fails exits, as Kafka does when its only log directory is offline, and others take over. The heal
restarts it on a good disk. Does not own which calls fail, or with which error: each fault does.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping

from chaos.faults.base import Probe
from chaos.faults.ends_on_its_own import EndsOnItsOwn
from chaos.faults.machine import Machine


class FailingDisk(EndsOnItsOwn):
    """Bites when calls failed, the process exited on its own, and another broker leads the partition."""

    @property
    @abstractmethod
    def _error(self) -> str:
        """The name of the error with which calls fail."""

    @property
    @abstractmethod
    def _calls(self) -> Collection[str]:
        """The calls that fail."""

    async def _break(self, machine: Machine) -> None:
        await machine.fail(self._calls, self._error, self.random.randrange(2**32))

    async def _repair(self, machine: Machine) -> None:
        await machine.heal()

    async def _met(self, machine: Machine) -> int:
        return await machine.failures()

    def _reason(self, met: int) -> Mapping[str, object]:
        return {"disk_error": self._error, "failed_calls": met}

    async def gone(self) -> Probe:
        rejoined = await self._rejoined()
        state = await self.cluster.machine(self._broker_id).see()
        well = state is not None and state.is_well
        running = await self._runs(self._broker_id)
        return Probe(rejoined and well and running, {"running": running, "disk_well": well, "isr_full": rejoined})
