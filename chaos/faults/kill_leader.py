"""``kill-leader``: SIGKILL the broker that leads a chosen partition, restart it after a while."""

from __future__ import annotations

from chaos.faults.base import Fault, Probe


class KillLeader(Fault):
    """Bites when the process is gone and another broker leads the partition."""

    name = "kill-leader"
    summary = "SIGKILL the broker that leads a partition; restart it on its own data directory"
    duration_s = (3.0, 5.0)
    recovery_s = 4.0

    async def choose(self) -> str:
        self._broker_id, self._epoch = await self._leader()
        return f"broker {self._broker_id}, leader of {self.cluster.topic}-{self._partition}"

    async def inject(self) -> None:
        self._pid = self.cluster.process(self._broker_id).pid
        self.cluster.process(self._broker_id).kill()

    async def bites(self) -> Probe:
        dead = not self.cluster.process(self._broker_id).is_running()
        moved = await self._moved_from(self._broker_id, self.cluster.session_timeout_ms + 6_000)
        seen = {"broker": self._broker_id, "pid": self._pid, "dead": dead, "leader_moved": moved}
        return Probe(dead and moved, seen)

    async def heal(self) -> None:
        if not self.cluster.process(self._broker_id).is_running():
            await self.cluster.restart(self._broker_id)

    async def gone(self) -> Probe:
        rejoined = await self._rejoined()
        seen = {"running": self.cluster.process(self._broker_id).is_running(), "isr_full": rejoined}
        return Probe(rejoined, seen)
