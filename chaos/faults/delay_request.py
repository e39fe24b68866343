"""``delay-request``: requests of one API are late on their way to a leader, and so is everything after them.

After its request timeout, a client sends the request again over another connection, and the first one arrives later.
"""

from __future__ import annotations

from dataclasses import replace

from chaos.faults.accepted import integer
from chaos.faults.base import Probe, until
from chaos.faults.damage import FrameAct
from chaos.faults.request_fault import WHICH_FRAMES, RequestFault
from chaos.faults.slowed_link import ENOUGH


class DelayRequest(RequestFault):
    """Bites when a request of this API was held for at least half of the delay, by the proxy's own clock."""

    name = "delay-request"
    summary = "delay requests of one API to a leader by up to a second, from the n-th on"
    accepts = (*WHICH_FRAMES, integer("delay_ms", 1, 60_000))

    def _draw(self) -> str:
        self._delay_ms = int(self.injection.parameters.get("delay_ms") or self.random.randint(200, 1_000))
        return f"{self._delay_ms} ms later"

    def act(self) -> FrameAct:
        return replace(self._on_these("delay", self._count(self.random.randint(1, 20))), delay_ms=self._delay_ms)

    async def bites(self) -> Probe:
        seen = {**self._where, "expected_ms": self._delay_ms}

        async def was_late() -> bool:
            counts = await self.damage.frame_counts()
            seen.update(frames=counts.matched, frames_hit=counts.acted, longest_ms=counts.longest_ms)
            return counts.longest_ms >= ENOUGH * self._delay_ms

        patience_ms = 4_000 + 2 * self._delay_ms
        return Probe(await until(was_late, clock=self.clock, timeout_ms=patience_ms, interval_ms=20), seen)
