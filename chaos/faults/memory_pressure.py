"""``memory-pressure``: a broker gets no more memory for a while.

The limit is on the address space of one process (``RLIMIT_AS``), which anyone may lower for processes of their own:
nothing is taken from the machine, the load or the other brokers. Whatever the broker gives back meanwhile, it does not
get again. A broker that is refused memory halts (``cluster.seams.out_of_memory``); others take over, and it is
started again without a limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

from chaos.faults.accepted import integer
from chaos.faults.base import Fault, Probe, Reach, until
from chaos.faults.machine import Machine
from cluster.seams.units import seconds_of_ms

_MIB = 2**20
#: What it may still get, in MiB, where nothing is said.
_SPARE_MB = (0, 4)
MOST_SPARE_MB = 1024
#: How often the limit follows what the broker gave back.
_FOLLOW_MS = 100
#: How long it may take until it asks for more than it may have, and then until the process has ended.
_END_MS = 20_000


class MemoryPressure(Fault):
    """Bites when the broker was refused memory and said so, its process ended, and another broker leads the partition.

    That it halts is the reaction of a broker that does not go on with a half-changed state.
    """

    name = "memory-pressure"
    summary = "let the leader of a partition get no more memory (RLIMIT_AS); restart it without the limit if it halts"
    reach: ClassVar[Reach] = "machines"
    duration_s = (3.0, 5.0)
    recovery_s = 4.0
    least_brokers = 2
    least_replicas = 2
    system = "linux"
    accepts = (integer("spare_mb", 0, MOST_SPARE_MB),)

    _task: asyncio.Task[None] | None = None
    _machine: Machine | None = None

    @classmethod
    def missed(cls, seen: Mapping[str, Any]) -> str:
        if not seen.get("halts"):
            return "the broker asked for no more memory than it had"
        return super().missed(seen)

    async def choose(self) -> str:
        self._over = asyncio.Event()
        self._broker_id, _ = await self._leader()
        drawn = self.random.randint(*_SPARE_MB)
        self._spare_mb = int(self.injection.parameters.get("spare_mb", drawn))
        more = f"{self._spare_mb} MiB more" if self._spare_mb else "nothing more"
        return f"broker {self._broker_id}, leader of {self.cluster.topic}-{self._partition}, gets {more}"

    async def inject(self) -> None:
        self._machine = machine = self.cluster.machine(self._broker_id)
        self._pid = self.cluster.process(self._broker_id).pid
        self._halts_before = await machine.halts()
        self._before = await self.cluster.reaction()
        self._limit = await machine.memory_bytes() + self._spare_mb * _MIB
        await machine.limit_memory(self._limit)
        self._task = asyncio.create_task(self._follow(machine))

    async def bites(self) -> Probe:
        async def ended() -> bool:
            return await self._has_ended(self._broker_id)

        dead = await until(ended, clock=self.clock, timeout_ms=_END_MS)
        halts = await self.cluster.machine(self._broker_id).halts() - self._halts_before
        moved = await self._moved_from(self._broker_id, self.patience_ms if dead else 0)
        seen: dict[str, Any] = {
            "broker": self._broker_id,
            "pid": self._pid,
            "spare_mb": self._spare_mb,
            "limit_mb": self._limit // _MIB,
            "halts": halts,
            "dead": dead,
            "leader_moved": moved,
        }
        return Probe(halts > 0 and dead and moved, seen)

    async def heal(self) -> None:
        self._over.set()
        if self._task is not None:
            await self._task
        if self._machine is not None:
            await self._lift(self._machine)
        if not await self._runs(self._broker_id):
            await self.cluster.restart(self._broker_id)

    async def gone(self) -> Probe:
        rejoined = await self._rejoined()
        running = await self._runs(self._broker_id)
        limited = await self.cluster.machine(self._broker_id).memory_limit() is not None
        answers = await self.cluster.answers(self._broker_id, timeout_ms=5_000)
        reacted = (await self.cluster.reaction()).since(self._before)
        seen = {"running": running, "limited": limited, "answers": answers, "isr_full": rejoined, **reacted.figures()}
        return Probe(rejoined and running and answers and not limited, seen)

    async def _follow(self, machine: Machine) -> None:
        """Lower the limit by what the broker gives back, until it is over or the process has ended."""
        while not self._over.is_set() and (size := await machine.memory_bytes()):
            if (limit := size + self._spare_mb * _MIB) < self._limit:
                self._limit = limit
                try:
                    await machine.limit_memory(limit)
                except OSError:
                    return
            await asyncio.sleep(seconds_of_ms(_FOLLOW_MS))

    async def _lift(self, machine: Machine) -> None:
        """Of a process that has ended, or is about to, there is nothing to lift."""
        try:
            await machine.limit_memory(None)
        except OSError:
            await asyncio.sleep(0.5)
