"""What the faults that only put toxics on links share: how they heal, and what shows that bytes are held back.

Owns that. Which links, and which toxics, are each fault's own.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any, ClassVar

from chaos.faults.base import Fault, Probe, Reach, until
from chaos.faults.damage import stats_of
from chaos.schedules.kinds import Hits

#: Recorded where there are no counters.
NO_COUNTERS = "none: an external Toxiproxy has no counters"
_HOLDS_MS = 2_500


class LinkFault(Fault):
    """Its damage is on links alone, and healed with them."""

    reach: ClassVar[Reach] = "clients"
    hits: ClassVar[Hits] = "traffic"

    async def heal(self) -> None:
        await self.damage.heal()

    async def gone(self) -> Probe:
        clear = await self.damage.clear()
        return Probe(clear, {"links_clear": clear})

    async def held_back(self, links: Sequence[str], seen: MutableMapping[str, Any], interval_ms: float) -> Probe:
        """Whether these links come to hold bytes back, and how many. Without counters the toxics must be in place."""

        async def held() -> bool:
            now = await stats_of(self.cluster.links, links)
            if now is None:
                seen["counters"] = NO_COUNTERS
                return await self.damage.in_place()
            seen["held_bytes"] = sum(stats.held_bytes for stats in now)
            return bool(seen["held_bytes"] > 0)

        return Probe(await until(held, clock=self.clock, timeout_ms=_HOLDS_MS, interval_ms=interval_ms), seen)
