"""The base of faults that end a connection at a frame. Its probes check that it ended, and that the links work again.

Does not own what happens to the frame itself: each fault does.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from chaos.faults.accepted import Rule, one_way
from chaos.faults.base import Probe, until
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

    async def bites(self) -> Probe:
        acted = await super().bites()
        return await self._with_consequence(
            acted, "closed_connections", lambda link: link.closed_connections, _ENDED_MS
        )

    async def gone(self) -> Probe:
        probe = await super().gone()

        async def serves() -> bool:
            for link in self._links:
                runs = await self._leads_to_one_that_runs(link)
                if runs and await self.cluster.links.ping(link, timeout_ms=_ANSWER_MS) is None:
                    return False
            return True

        again = await until(serves, clock=self.clock, timeout_ms=_AGAIN_MS)
        return Probe(probe.effective and again, {**probe.seen, "connects_again": again})
