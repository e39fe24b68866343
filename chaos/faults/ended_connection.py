"""What faults share that end a connection at a frame: it ended, and links serve again afterwards. Owns that alone."""

from __future__ import annotations

from typing import ClassVar, Literal

from chaos.faults.accepted import Rule, one_way
from chaos.faults.base import Probe, until
from chaos.faults.damage import stats_of
from chaos.faults.link_fault import NO_COUNTERS
from chaos.faults.request_fault import WHICH_FRAMES, RequestFault

_ENDED_MS = 2_000
_ANSWER_MS = 3_000
_AGAIN_MS = 6_000


class EndedConnection(RequestFault):
    """Bites when the proxy acted on such a frame, and connections of these links ended."""

    duration_s = (0.5, 2.0)
    accepts: ClassVar[tuple[Rule, ...]] = (*WHICH_FRAMES, one_way("direction"))

    def _drawn_direction(self) -> Literal["request", "response"]:
        either: list[Literal["request", "response"]] = ["request", "response"]
        wanted = self.injection.parameters.get("direction")
        return either[either.index(wanted)] if wanted in either else self.random.choice(either)

    async def inject(self) -> None:
        self._before = await stats_of(self.cluster.links, self._links)
        await super().inject()

    async def bites(self) -> Probe:
        probe = await super().bites()
        seen = dict(probe.seen)

        async def ended() -> bool:
            now = await stats_of(self.cluster.links, self._links)
            if now is None or self._before is None:
                seen["counters"] = NO_COUNTERS
                return True
            pairs = zip(self._before, now, strict=True)
            seen["closed_connections"] = sum(new.closed_connections - old.closed_connections for old, new in pairs)
            return bool(seen["closed_connections"])

        return Probe(probe.effective and await until(ended, clock=self.clock, timeout_ms=_ENDED_MS), seen)

    async def gone(self) -> Probe:
        probe = await super().gone()

        async def serves() -> bool:
            for link in self._links:
                runs = self.cluster.process(int(link.rpartition("-b")[2])).is_running()
                if runs and await self.cluster.links.ping(link, timeout_ms=_ANSWER_MS) is None:
                    return False
            return True

        again = await until(serves, clock=self.clock, timeout_ms=_AGAIN_MS)
        return Probe(probe.effective and again, {**probe.seen, "connects_again": again})
