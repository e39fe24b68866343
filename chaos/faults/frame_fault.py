"""The base of faults that act on frames: while the fault lasts, the proxy acts on certain frames of certain links.

Does not own which links and frames, and what is done to them: each fault does.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from chaos.faults.base import Fault, Probe, Reach, until
from chaos.faults.damage import OCCASION_MS, FrameAct


class FrameFault(Fault):
    """Bites when the proxy acted on such a frame."""

    reach: ClassVar[Reach] = "clients"
    duration_s = (2.0, 4.0)
    recovery_s = 2.0
    hits = "traffic"
    acts_on_frames = True

    _links: list[str]
    #: The target, for the record of the probe.
    _where: Mapping[str, object]

    @abstractmethod
    def act(self) -> FrameAct:
        """What to do to which frames."""

    async def inject(self) -> None:
        await self.damage.act_on_frames(self._links, self.act())

    async def bites(self) -> Probe:
        seen = dict(self._where)

        async def acted() -> bool:
            counts = await self.damage.frame_counts()
            seen["frames"], seen["frames_hit"] = counts.matched, counts.acted
            return counts.acted > 0

        return Probe(await until(acted, clock=self.clock, timeout_ms=OCCASION_MS, interval_ms=20), seen)

    async def heal(self) -> None:
        self._hit = (await self.damage.frame_counts()).acted
        await self.damage.heal()

    async def gone(self) -> Probe:
        clear = await self.damage.clear()
        return Probe(clear, {"links_clear": clear, "frames_hit": self._hit})
