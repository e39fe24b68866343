"""The base of faults that take links down. Its probes check that attempts to connect are refused, and later succeed.

The probes need no counters of the proxy. Does not own which links are taken down, or when: each fault does.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod

from chaos.faults.base import PreconditionMissing, Probe, until
from chaos.faults.damage import stats_of
from chaos.faults.link_fault import NO_COUNTERS, LinkFault

#: The number of attempts to connect on each link.
_ATTEMPTS = 3
_ANSWER_MS = 3_000
_AGAIN_MS = 6_000


class DownLink(LinkFault):
    """Bites when every attempt of the probe to connect is refused, and the proxy ended the existing connections."""

    recovery_s = 2.0
    hits = "link"
    targets = ("partition", "link")

    _links: list[str]

    @abstractmethod
    async def _drawn(self) -> list[str]:
        """Draw the links, if the injection names none. Raises PreconditionMissing."""

    async def choose(self) -> str:
        wanted = self.injection.target.get("link")
        self._links = await self._drawn() if wanted is None else [str(wanted)]
        for link in self._links:
            if link not in self.cluster.link_names:
                raise PreconditionMissing(f"there is no link {link!r}")
        return ", ".join(self._links)

    async def _look(self) -> None:
        """Note the counters of the links before they are broken."""
        self._before = await stats_of(self.cluster.links, self._links)

    async def _ended(self, seen: dict[str, object]) -> bool:
        """Whether connections have ended since then; adds their number to ``seen``."""
        now = await stats_of(self.cluster.links, self._links)
        if now is None or self._before is None:
            seen["counters"] = NO_COUNTERS
            return True
        ended = sum(each.closed_connections for each in now) - sum(each.closed_connections for each in self._before)
        seen["closed_connections"] = ended
        return ended > 0

    async def _refused(self) -> int:
        """How many attempts are refused, with one attempt on each link."""
        return sum(await asyncio.gather(*(self.cluster.links.is_refused(link) for link in self._links)))

    async def bites(self) -> Probe:
        seen: dict[str, object] = {"links": self._links}
        refused = 0
        for _ in range(_ATTEMPTS):
            refused += await self._refused()
        seen["refused_connections"] = refused

        async def ended() -> bool:
            return await self._ended(seen)

        there = await until(ended, clock=self.clock, timeout_ms=1_000)
        return Probe(there and refused == _ATTEMPTS * len(self._links), seen)

    async def gone(self) -> Probe:
        clear = await self.damage.clear()

        async def serves() -> bool:
            refused = await self._refused()
            return not refused and all(await asyncio.gather(*map(self._answers, self._links)))

        again = await until(serves, clock=self.clock, timeout_ms=_AGAIN_MS)
        return Probe(clear and again, {"links_clear": clear, "connects_again": again})

    async def _answers(self, link: str) -> bool:
        """Whether a request through the link is answered. True if its broker does not run."""
        if not await self._leads_to_one_that_runs(link):
            return True
        return await self.cluster.links.ping(link, timeout_ms=_ANSWER_MS) is not None
