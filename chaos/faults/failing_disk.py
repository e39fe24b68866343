"""What faults with a failing disk share: calls to the leader's disk fail, and its broker must not continue.

Owns that. A broker whose disk fails exits, as Kafka does when its only log directory is offline; others take over. It
is restarted on a good disk. Which calls fail, and with what, is each fault's own.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Collection
from typing import Any, ClassVar

from chaos.faults.base import Fault, Probe, Reach, until

#: How long it may take until a call comes by that fails, and then until the process has ended.
_END_MS = 15_000


class FailingDisk(Fault):
    """Bites when calls failed, the process exited on its own, and another broker leads the partition."""

    reach: ClassVar[Reach] = "machines"
    duration_s = (3.0, 5.0)
    recovery_s = 4.0
    least_brokers = 2
    least_replicas = 2
    needs_fault_port = True

    @property
    @abstractmethod
    def _error(self) -> str:
        """The name of the error that calls fail with."""

    @property
    @abstractmethod
    def _calls(self) -> Collection[str]:
        """The calls that fail."""

    async def choose(self) -> str:
        self._broker_id, _ = await self._leader()
        return f"broker {self._broker_id}, leader of {self.cluster.topic}-{self._partition}"

    async def inject(self) -> None:
        machine = self.cluster.machine(self._broker_id)
        self._pid = self.cluster.process(self._broker_id).pid
        self._before = await machine.failures()
        await machine.fail(self._calls, self._error, self.random.randrange(2**32))

    async def bites(self) -> Probe:
        async def ended() -> bool:
            return await self._has_ended(self._broker_id)

        dead = await until(ended, clock=self.clock, timeout_ms=_END_MS)
        failures = await self.cluster.machine(self._broker_id).failures() - self._before
        moved = await self._moved_from(self._broker_id, self.patience_ms if dead else 0)
        seen: dict[str, Any] = {
            "broker": self._broker_id,
            "pid": self._pid,
            "disk_error": self._error,
            "failed_calls": failures,
            "dead": dead,
            "leader_moved": moved,
        }
        return Probe(failures > 0 and dead and moved, seen)

    async def heal(self) -> None:
        process = self.cluster.process(self._broker_id)
        if await self._runs(self._broker_id) and process.pid == self._pid:
            await self._heal_disk()
        if not await self._runs(self._broker_id):
            await self.cluster.restart(self._broker_id)

    async def _heal_disk(self) -> None:
        """If the process has not exited; it may do so meanwhile."""
        try:
            await self.cluster.machine(self._broker_id).heal()
        except OSError:
            await asyncio.sleep(0.5)

    async def gone(self) -> Probe:
        rejoined = await self._rejoined()
        state = await self.cluster.machine(self._broker_id).see()
        well = state is not None and state.is_well
        running = await self._runs(self._broker_id)
        return Probe(rejoined and well and running, {"running": running, "disk_well": well, "isr_full": rejoined})
