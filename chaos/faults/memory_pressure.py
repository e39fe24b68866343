"""``memory-pressure``: a broker has little memory left, and gets no more.

Its address space may not grow any further (``RLIMIT_AS`` of this process, which needs no privileges), and most of the
free memory in its heaps is used up. Nothing is taken from the machine, the load or the other brokers. Sooner or later
some allocation fails, anywhere in the code. The broker then halts (``cluster.seams.out_of_memory``), because its state
may be inconsistent. Other brokers take over, and it is restarted.
"""

from __future__ import annotations

from collections.abc import Mapping

from chaos.faults.accepted import integer
from chaos.faults.base import Probe
from chaos.faults.ends_on_its_own import EndsOnItsOwn
from chaos.faults.machine import Machine

#: The bounds of the drawn free memory in KiB, and the most that an injection may ask for.
_SPARE_KB = (0, 256)
MOST_SPARE_KB = 65_536
_ANSWER_MS = 5_000


class MemoryPressure(EndsOnItsOwn):
    """Bites when the broker was refused memory and said so, its process ended, and another broker leads the partition.

    That it ended alone proves no lack of memory.
    """

    name = "memory-pressure"
    summary = "leave the leader of a partition little memory and let it get no more; restart it when it has halted"
    system = "linux"
    accepts = (integer("spare_kb", 0, MOST_SPARE_KB),)
    end_ms = 20_000

    @classmethod
    def missed(cls, seen: Mapping[str, object]) -> str:
        if not seen.get("halts"):
            return "the broker asked for no more memory than it had"
        return super().missed(seen)

    async def choose(self) -> str:
        broker = await super().choose()
        drawn = self.random.randint(*_SPARE_KB)
        self._spare_kb = int(self.injection.parameters.get("spare_kb", drawn))
        # here and not in inject(), which may fail: the second probe needs it in any case
        self._before = await self.cluster.reaction()
        return f"{broker}, left with {self._spare_kb} KiB"

    async def _break(self, machine: Machine) -> None:
        await machine.take_memory(self._spare_kb)

    async def _repair(self, machine: Machine) -> None:
        await machine.give_memory()

    async def _met(self, machine: Machine) -> int:
        return await machine.halts()

    def _reason(self, met: int) -> Mapping[str, object]:
        return {"spare_kb": self._spare_kb, "halts": met}

    async def gone(self) -> Probe:
        rejoined = await self._rejoined()
        running = await self._runs(self._broker_id)
        limited = await self.cluster.machine(self._broker_id).memory_limit() is not None
        answers = await self.cluster.answers(self._broker_id, timeout_ms=_ANSWER_MS)
        reacted = (await self.cluster.reaction()).since(self._before)
        seen = {"running": running, "limited": limited, "answers": answers, "isr_full": rejoined, **reacted.figures()}
        return Probe(rejoined and running and answers and not limited, seen)
