"""What the pauses of coordinators share: SIGSTOP at a step, when its frame has come by, for longer than the session.

The frame is delivered once the process is stopped: a request waits until the zombie wakes up, and a response reaches
its client at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.faults.at_step import AtStep
from chaos.faults.base import Probe
from chaos.faults.pause import Pause


class PauseCoordinator(AtStep, Pause):
    """Bites when the process is stopped, does not respond, and another broker coordinates what it coordinated."""

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
