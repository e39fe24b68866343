"""What faults with a failing disk share: calls to the leader's disk fail, and its broker must not continue.

Owns that. A broker whose disk fails exits, as Kafka does when its only log directory is offline; others take over. It
is restarted on a good disk. Which calls fail, and with what, is each fault's own.
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
        """The name of the error that calls fail with."""

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
