"""``flapping``: a link goes down and comes up again, every few tenths of a second.

Each time its connections end and new ones are refused; in between they are served. This shows clients that back off for
longer and longer, or give up after some attempts.
"""

from __future__ import annotations

import asyncio
import contextlib

from chaos.faults.base import Probe, until
from chaos.faults.down_link import DownLink
from cluster.seams.units import seconds_of_ms

#: How often the link must have refused connections, and accepted them again.
_LEAST_TURNS = 3
_PATIENCE_MS = 12_000


class Flapping(DownLink):
    """Bites when the probe was refused at least three times while it was down, and answered as often in between."""

    name = "flapping"
    summary = "take one link down and up again, over and over"
    duration_s = (3.0, 6.0)

    _flapping: asyncio.Task[None] | None = None
    _ending: asyncio.Event

    async def _drawn(self) -> list[str]:
        leader, _ = await self._leader()
        running = await self._running()
        links = [f"b{each}-b{leader}" for each in running if each != leader] + [f"producers-b{leader}"]
        return [self.random.choice([link for link in links if link in self.cluster.link_names])]

    async def inject(self) -> None:
        await self._look()
        self._downs, self._ups = 0, 0
        self._ending = asyncio.Event()
        self._flapping = asyncio.create_task(self._flap())

    async def _flap(self) -> None:
        while not self._ending.is_set():
            await self.damage.take_down(self._links)
            self._downs += await self._refused()
            await self._pause()
            await self.damage.heal()
            self._ups += await self._answers(self._links[0])
            await self._pause()

    async def _pause(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds_of_ms(self.random.randint(150, 400))):
                await self._ending.wait()

    async def bites(self) -> Probe:
        async def turned() -> bool:
            failed = self._flapping is None or self._flapping.done()
            return failed or min(self._downs, self._ups) >= _LEAST_TURNS

        await until(turned, clock=self.clock, timeout_ms=_PATIENCE_MS)
        seen: dict[str, object] = {"links": self._links}
        ended = await self._ended(seen)
        seen |= {"refused_connections": self._downs, "times_up": self._ups}
        return Probe(ended and min(self._downs, self._ups) >= _LEAST_TURNS, seen)

    async def heal(self) -> None:
        if self._flapping is not None:
            # not cancelled, because a link that is just being taken down would stay down
            self._ending.set()
            await asyncio.wait([self._flapping])
        await super().heal()
