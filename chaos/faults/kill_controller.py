"""``kill-controller``: SIGKILL the broker that is the controller, restart it after a while."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.faults.base import PreconditionMissing, until
from chaos.faults.kill import Kill


class KillController(Kill):
    """Bites when the process is gone and another broker is the controller."""

    name = "kill-controller"
    summary = "SIGKILL the controller; restart it on its own data directory"

    async def choose(self) -> str:
        found = await self.cluster.controller()
        if found is None or not await self._runs(found):
            raise PreconditionMissing("there is no controller")
        self._broker_id = found
        return f"broker {found}, the controller"

    async def noted(self) -> tuple[bool, Mapping[str, Any]]:
        async def moved() -> bool:
            found = await self.cluster.controller()
            return found is not None and found != self._broker_id

        elected = await until(moved, clock=self.clock, timeout_ms=self.patience_ms)
        return elected, {"controller_moved": elected}
