"""The base of faults that only put toxics on links: heals the links, and checks whether bytes are held back.

Does not own which links and which toxics: each fault does.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any, ClassVar

from chaos.faults.base import Fault, Probe, Reach, until
from chaos.faults.damage import stats_of
from chaos.schedules.kinds import Hits

#: Recorded if there are no counters.
NO_COUNTERS = "none: an external Toxiproxy has no counters"
_HOLDS_MS = 2_500


class LinkFault(Fault):
    """A fault whose damage is only on links."""

    reach: ClassVar[Reach] = "clients"
    hits: ClassVar[Hits] = "traffic"

    async def heal(self) -> None:
        await self.damage.heal()

    async def gone(self) -> Probe:
        clear = await self.damage.clear()
        return Probe(clear, {"links_clear": clear})

    async def held_back(self, links: Sequence[str], seen: MutableMapping[str, Any], interval_ms: float) -> Probe:
        """Whether these links hold bytes back, and how many. Without counters, whether the toxics are in place."""

        async def held() -> bool:
            now = await stats_of(self.cluster.links, links)
            if now is None:
                seen["counters"] = NO_COUNTERS
                return await self.damage.in_place()
            seen["held_bytes"] = sum(stats.held_bytes for stats in now)
            return bool(seen["held_bytes"] > 0)

        return Probe(await until(held, clock=self.clock, timeout_ms=_HOLDS_MS, interval_ms=interval_ms), seen)
