"""``kill-controller``: SIGKILL the broker that is the controller, restart it after a while."""

from __future__ import annotations

from chaos.faults.base import Fault, PreconditionMissing, Probe, until


class KillController(Fault):
    """Bites when the process is gone and another broker is the controller."""

    name = "kill-controller"
    summary = "SIGKILL the controller; restart it on its own data directory"
    duration_s = (3.0, 5.0)
    recovery_s = 4.0

    async def choose(self) -> str:
        found = await self.cluster.controller()
        if found is None or not self.cluster.process(found).is_running():
            raise PreconditionMissing("there is no controller")
        self._broker_id = found
        return f"broker {found}, the controller"

    async def inject(self) -> None:
        self._pid = self.cluster.process(self._broker_id).pid
        self.cluster.process(self._broker_id).kill()

    async def bites(self) -> Probe:
        dead = not self.cluster.process(self._broker_id).is_running()

        async def moved() -> bool:
            found = await self.cluster.controller()
            return found is not None and found != self._broker_id

        elected = await until(moved, clock=self.clock, timeout_ms=self.cluster.session_timeout_ms + 6_000)
        seen = {"broker": self._broker_id, "pid": self._pid, "dead": dead, "controller_moved": elected}
        return Probe(dead and elected, seen)

    async def heal(self) -> None:
        if not self.cluster.process(self._broker_id).is_running():
            await self.cluster.restart(self._broker_id)

    async def gone(self) -> Probe:
        rejoined = await self._rejoined()
        return Probe(rejoined, {"running": self.cluster.process(self._broker_id).is_running(), "isr_full": rejoined})
