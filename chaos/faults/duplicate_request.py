"""``duplicate-request``: requests of one API arrive at a leader twice, one right behind the other.

As after a retry whose first request was only slow. The client sees the first answer; the proxy swallows the second one.
"""

from __future__ import annotations

from chaos.faults.base import Probe, until
from chaos.faults.damage import FrameAct, LinkTraffic, stats_of
from chaos.faults.link_fault import NO_COUNTERS
from chaos.faults.request_fault import RequestFault

#: A broker answers a repeated Fetch when it has waited for records.
_ANSWERED_MS = 3_000


class DuplicateRequest(RequestFault):
    """Bites when the proxy sent requests twice and swallowed answers to them.

    A broker cannot tell a repeated batch from a new one if it carries no producer ID.
    """

    name = "duplicate-request"
    summary = "deliver requests of one API to a leader twice, from the n-th on"
    needs_idempotence = True

    def _draw(self) -> str:
        return "twice"

    def act(self) -> FrameAct:
        return self._on_these("repeat", self._count(self.random.randint(1, 20)))

    async def inject(self) -> None:
        self._before = await stats_of(self.cluster.links, self._links)
        await super().inject()

    async def bites(self) -> Probe:
        probe = await super().bites()
        seen = dict(probe.seen)

        async def swallowed() -> bool:
            now = await stats_of(self.cluster.links, self._links)
            if now is None or self._before is None:
                seen["counters"] = NO_COUNTERS
                return True
            seen["dropped_bytes"] = _dropped(now) - _dropped(self._before)
            return bool(seen["dropped_bytes"] > 0)

        return Probe(probe.effective and await until(swallowed, clock=self.clock, timeout_ms=_ANSWERED_MS), seen)


def _dropped(stats: list[LinkTraffic]) -> int:
    return sum(each.dropped_response_bytes for each in stats)
