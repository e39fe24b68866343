"""The base of faults that pause one broker: SIGSTOP, and SIGCONT after a while. Does not own which broker.

A pause lasts longer than the broker's ZooKeeper session, so the broker wakes up as a zombie: it still believes that it
leads or coordinates what another broker has taken over.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from chaos.faults.base import Fault, Probe, Reach


class Pause(Fault):
    """Bites when the process is stopped, does not respond, and another broker has taken over."""

    reach: ClassVar[Reach] = "processes"
    duration_s = (3.0, 4.5)
    recovery_s = 3.5
    least_replicas = 2

    _broker_id: int

    @abstractmethod
    async def noted(self) -> tuple[bool, Mapping[str, Any]]:
        """Whether another broker has taken over, and the figures that show it. Waits for that for a limited time."""

    async def inject(self) -> None:
        await asyncio.to_thread(self.cluster.process(self._broker_id).suspend)

    async def bites(self) -> Probe:
        stopped = self.cluster.process(self._broker_id).is_suspended()
        silent = not await self.cluster.answers(self._broker_id, timeout_ms=300)
        noted, how = await self.noted()
        seen = {"broker": self._broker_id, "stopped": stopped, "silent": silent, **how}
        return Probe(stopped and silent and noted, seen)

    async def heal(self) -> None:
        await asyncio.to_thread(self.cluster.process(self._broker_id).resume)

    async def gone(self) -> Probe:
        answers = await self.cluster.answers(self._broker_id, timeout_ms=3_000)
        rejoined = await self._rejoined()
        stopped = self.cluster.process(self._broker_id).is_suspended()
        return Probe(answers and rejoined, {"stopped": stopped, "answers": answers, "isr_full": rejoined})
