"""``slow-link``: the producers' links to every broker have some milliseconds of latency, as between two sites.

Nothing is lost and the order is kept (Toxiproxy's ``latency`` without jitter). It shows what multiple requests in
flight are good for. ``parameters`` are ``latency_ms`` and ``direction``; the target may be one ``link: NAME``.
"""

from __future__ import annotations

from chaos.faults.accepted import integer, one_of
from chaos.faults.base import PreconditionMissing, Probe
from chaos.faults.damage import Direction
from chaos.faults.link_fault import LinkFault


class SlowLink(LinkFault):
    """Bites when bytes are held back on the links."""

    name = "slow-link"
    summary = "delay what the producers send by some milliseconds, on all of their links"
    duration_s = (3.0, 6.0)
    recovery_s = 1.0
    hits_client_links = True
    targets = ("partition", "link")
    accepts = (integer("latency_ms", 1, 60_000), one_of("direction", "request", "response", "both"))

    async def choose(self) -> str:
        parameters = self.injection.parameters
        self._latency_ms = int(parameters.get("latency_ms", 50))
        self._direction: Direction = parameters.get("direction", "request")
        wanted = self.injection.target.get("link")
        self._links = [name for name in self.cluster.link_names if wanted in (None, name)]
        if wanted is None:
            self._links = [name for name in self._links if name.startswith("producers-")]
        if not self._links:
            raise PreconditionMissing(f"there is no link {wanted!r}")
        return f"{', '.join(self._links)}, {self._direction}s {self._latency_ms} ms later"

    async def inject(self) -> None:
        await self.damage.delay(self._links, self._direction, latency_ms=self._latency_ms)

    async def bites(self) -> Probe:
        seen = {"links": self._links, "latency_ms": self._latency_ms, "direction": self._direction}
        return await self.held_back(self._links, seen, interval_ms=5)
