"""The base of faults that kill a coordinator at a step: SIGKILL while its frame is held.

The frame is lost with the connection, so the broker never gets the request, or the client never gets the response. Does
not own which steps there are (``steps``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.faults.at_step import AtStep
from chaos.faults.base import Probe
from chaos.faults.kill import Kill


class KillCoordinator(AtStep, Kill):
    """Bites when the process is gone and another broker has become the coordinator."""

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
