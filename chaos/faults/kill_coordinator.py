"""What the kills of coordinators share: SIGKILL at a step, just when its frame has come by and is held.

The frame is lost with the connection: a request that the broker never got, or a response that its client never got.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.faults.at_step import AtStep
from chaos.faults.base import Probe
from chaos.faults.kill import Kill


class KillCoordinator(AtStep, Kill):
    """Bites when the process is gone and another broker coordinates what it coordinated."""

    async def inject(self) -> None:
        await self.at_step(super().inject, lossy=True)

    async def bites(self) -> Probe:
        return await super().bites() if self.came_by else self.nothing_came()

    async def noted(self) -> tuple[bool, Mapping[str, Any]]:
        return await self.moved()

    async def heal(self) -> None:
        await self.damage.heal()
        await super().heal()

    async def gone(self) -> Probe:
        clear = await self.damage.clear()
        rejoined = await super().gone()
        return Probe(clear and rejoined.effective, {**rejoined.seen, "links_clear": clear})
