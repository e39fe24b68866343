"""``pause-leader``: SIGSTOP the broker that leads a chosen partition, SIGCONT it after a while.

Longer than the ZooKeeper session, so that the broker wakes up as a zombie that still believes it leads.
"""

from __future__ import annotations

import asyncio

from chaos.faults.base import Fault, Probe


class PauseLeader(Fault):
    """Bites when the process is stopped, does not respond, and another broker comes to lead the partition."""

    name = "pause-leader"
    summary = "SIGSTOP the broker that leads a partition for longer than its session; SIGCONT it"
    duration_s = (3.0, 4.5)
    recovery_s = 3.5
    least_replicas = 2

    async def choose(self) -> str:
        self._broker_id, self._epoch = await self._leader()
        return f"broker {self._broker_id}, leader of {self.cluster.topic}-{self._partition}"

    async def inject(self) -> None:
        await asyncio.to_thread(self.cluster.process(self._broker_id).suspend)

    async def bites(self) -> Probe:
        stopped = self.cluster.process(self._broker_id).is_suspended()
        silent = not await self.cluster.answers(self._broker_id, timeout_ms=300)
        moved = await self._moved_from(self._broker_id, self.patience_ms)
        seen = {"broker": self._broker_id, "stopped": stopped, "silent": silent, "leader_moved": moved}
        return Probe(stopped and silent and moved, seen)

    async def heal(self) -> None:
        await asyncio.to_thread(self.cluster.process(self._broker_id).resume)

    async def gone(self) -> Probe:
        answers = await self.cluster.answers(self._broker_id, timeout_ms=3_000)
        rejoined = await self._rejoined()
        seen = {
            "stopped": self.cluster.process(self._broker_id).is_suspended(),
            "answers": answers,
            "isr_full": rejoined,
        }
        return Probe(answers and rejoined, seen)
