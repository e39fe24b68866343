"""The base of faults that pause a coordinator at a step: SIGSTOP while its frame is held, for longer than the session.

The frame is delivered once the process is stopped. A request then waits until the zombie wakes up; a response reaches
its client at once. Does not own which steps there are (``steps``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.faults.at_step import AtStep
from chaos.faults.base import Probe
from chaos.faults.pause import Pause


class PauseCoordinator(AtStep, Pause):
    """Bites when the process is stopped, does not respond, and another broker has become the coordinator."""

    async def inject(self) -> None:
        await self.at_step(super().inject, lossy=False)

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
