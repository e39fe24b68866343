"""What the pauses of coordinators share: SIGSTOP at a step, when its frame has come by, for longer than the session.

The frame is let go once the process is stopped: a request waits for the zombie, which wakes up to it, and a response
reaches its client at once.
"""

from __future__ import annotations

import asyncio

from chaos.faults.at_step import AtStep
from chaos.faults.base import Probe


class PauseCoordinator(AtStep):
    """Bites when the process is stopped, does not respond, and another broker coordinates what it coordinated."""

    duration_s = (3.0, 4.5)
    recovery_s = 3.5

    async def inject(self) -> None:
        async def suspend() -> None:
            await asyncio.to_thread(self.cluster.process(self._broker_id).suspend)

        await self.at_step(suspend, lossy=False)

    async def bites(self) -> Probe:
        if not self.came_by:
            return self.nothing_came()
        stopped = self.cluster.process(self._broker_id).is_suspended()
        silent = not await self.cluster.answers(self._broker_id, timeout_ms=300)
        moved, how = await self.moved()
        seen = {"broker": self._broker_id, "stopped": stopped, "silent": silent, **how}
        return Probe(stopped and silent and moved, seen)

    async def heal(self) -> None:
        await self.damage.heal()
        await asyncio.to_thread(self.cluster.process(self._broker_id).resume)

    async def gone(self) -> Probe:
        clear = await self.damage.clear()
        answers = await self.cluster.answers(self._broker_id, timeout_ms=3_000)
        rejoined = await self._rejoined()
        stopped = self.cluster.process(self._broker_id).is_suspended()
        seen = {"stopped": stopped, "answers": answers, "isr_full": rejoined, "links_clear": clear}
        return Probe(clear and answers and rejoined, seen)
