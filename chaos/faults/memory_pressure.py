"""``memory-pressure``: a broker has little memory left, and gets no more.

Its address space may not grow any further (``RLIMIT_AS`` of one process, which anyone may lower), and what its heaps
have free is taken, but for a little. Nothing is taken from the machine, the load or the other brokers. Sooner or later
some allocation fails, anywhere: a broker halts then (``cluster.seams.out_of_memory``), since its state may be
half changed. Others take over, and it is started again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import ClassVar

from chaos.faults.accepted import integer
from chaos.faults.base import Fault, Probe, Reach, until
from chaos.faults.machine import Machine

#: What is left to it, in KiB, where nothing is said; and the most that may be.
_SPARE_KB = (0, 256)
MOST_SPARE_KB = 65_536
#: How long it may take until it asks for more than it may have, and then until the process has ended.
_END_MS = 20_000
_ANSWER_MS = 5_000


class MemoryPressure(Fault):
    """Bites when the broker was refused memory and said so, its process ended, and another broker leads the partition.

    That it ended alone proves no lack of memory.
    """

    name = "memory-pressure"
    summary = "leave the leader of a partition little memory and let it get no more; restart it when it has halted"
    reach: ClassVar[Reach] = "machines"
    duration_s = (3.0, 5.0)
    recovery_s = 4.0
    least_brokers = 2
    least_replicas = 2
    needs_fault_port = True
    system = "linux"
    accepts = (integer("spare_kb", 0, MOST_SPARE_KB),)

    _machine: Machine | None = None

    @classmethod
    def missed(cls, seen: Mapping[str, object]) -> str:
        if not seen.get("halts"):
            return "the broker asked for no more memory than it had"
        return super().missed(seen)

    async def choose(self) -> str:
        self._broker_id, _ = await self._leader()
        drawn = self.random.randint(*_SPARE_KB)
        self._spare_kb = int(self.injection.parameters.get("spare_kb", drawn))
        left = f"left with {self._spare_kb} KiB"
        return f"broker {self._broker_id}, leader of {self.cluster.topic}-{self._partition}, {left}"

    async def inject(self) -> None:
        self._machine = machine = self.cluster.machine(self._broker_id)
        self._pid = self.cluster.process(self._broker_id).pid
        self._halts_before = await machine.halts()
        self._before = await self.cluster.reaction()
        await machine.take_memory(self._spare_kb)

    async def bites(self) -> Probe:
        async def ended() -> bool:
            return await self._has_ended(self._broker_id)

        dead = await until(ended, clock=self.clock, timeout_ms=_END_MS)
        halts = await self.cluster.machine(self._broker_id).halts() - self._halts_before
        moved = await self._moved_from(self._broker_id, self.patience_ms if dead else 0)
        seen = {
            "broker": self._broker_id,
            "pid": self._pid,
            "spare_kb": self._spare_kb,
            "halts": halts,
            "dead": dead,
            "leader_moved": moved,
        }
        return Probe(halts > 0 and dead and moved, seen)

    async def heal(self) -> None:
        process = self.cluster.process(self._broker_id)
        if self._machine is not None and await self._runs(self._broker_id) and process.pid == self._pid:
            await self._give(self._machine)
        if not await self._runs(self._broker_id):
            await self.cluster.restart(self._broker_id)

    async def gone(self) -> Probe:
        rejoined = await self._rejoined()
        running = await self._runs(self._broker_id)
        limited = await self.cluster.machine(self._broker_id).memory_limit() is not None
        answers = await self.cluster.answers(self._broker_id, timeout_ms=_ANSWER_MS)
        reacted = (await self.cluster.reaction()).since(self._before)
        seen = {"running": running, "limited": limited, "answers": answers, "isr_full": rejoined, **reacted.figures()}
        return Probe(rejoined and running and answers and not limited, seen)

    async def _give(self, machine: Machine) -> None:
        """If the process has not halted; it may do so meanwhile."""
        try:
            await machine.give_memory()
        except OSError:
            await asyncio.sleep(0.5)
