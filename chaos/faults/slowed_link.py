"""What faults share that slow clients' links down: pings show by how much, before, during and after.

Owns the measurement. Which toxic it is, and by how much it must delay pings, is each fault's own. It needs no counters
of the proxy, so the proof is the same on an external Toxiproxy.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from chaos.faults.base import PreconditionMissing, Probe, until
from chaos.faults.link_fault import LinkFault

#: Which share of the nominal delay is enough: the rest is left to timers and other requests.
ENOUGH = 0.5
_PATIENCE_MS = 10_000
_BASE_PINGS = 3


class SlowedLink(LinkFault):
    """Bites when pings take longer by at least half of the nominal delay.

    The target is the links of clients to the leader, or ``link: NAME``; requests are slowed, not responses.
    """

    duration_s = (3.0, 6.0)
    recovery_s = 2.0
    hits_client_links = True
    targets = ("partition", "link")

    #: How many times the link is measured while it lasts.
    pings: ClassVar[int] = 1

    _links: list[str]

    @property
    @abstractmethod
    def nominal_ms(self) -> float:
        """By how much the toxic delays a ping of ``burst_bytes`` on average."""

    @property
    def burst_bytes(self) -> int:
        """How much is sent to measure the link."""
        return 0

    @abstractmethod
    def toxic(self) -> tuple[str, Mapping[str, int]]:
        """The type of the toxic, and its attributes."""

    @abstractmethod
    def draw(self) -> str:
        """Draw what the parameters leave open. Returns it in words, for the record."""

    async def choose(self) -> str:
        self._links = await self._wanted()
        return f"{', '.join(self._links)}, requests {self.draw()}"

    async def _wanted(self) -> list[str]:
        wanted = self.injection.target.get("link")
        if wanted is not None:
            if wanted not in self.cluster.link_names or str(wanted).endswith("-zk"):
                raise PreconditionMissing(f"there is no link {wanted!r} to a broker")
            return [str(wanted)]
        leader, _ = await self._leader()
        return self._client_links(leader)

    async def inject(self) -> None:
        base = await self._measured(max(_BASE_PINGS, len(self._links)))
        self._is_measured = bool(base)
        self._base_ms = min(base, default=0.0)
        await self.damage.put_toxic(self._links, "request", *self.toxic())

    async def bites(self) -> Probe:
        took_ms = await self._measured(max(self.pings, len(self._links)))
        late_ms = [each - self._base_ms for each in took_ms]
        mean_ms = sum(late_ms) / len(late_ms) if late_ms else 0.0
        seen = {"links": self._links, "expected_ms": round(self.nominal_ms), "late_ms": round(mean_ms)}
        more = await self._more(late_ms)
        # without a ping before, what is late now may have been late before
        is_late = self._is_measured and mean_ms >= ENOUGH * self.nominal_ms
        return Probe(is_late and more.effective, {**seen, **more.seen})

    async def _more(self, late_ms: list[float]) -> Probe:
        """What else must be seen in the measurements."""
        return Probe(True)

    async def gone(self) -> Probe:
        clear = await self.damage.clear()
        last: list[float] = []

        async def quick() -> bool:
            last[:] = await self._measured(1)
            return not last or last[0] - self._base_ms < ENOUGH * self.nominal_ms

        # no answer at all is another fault's: a broker that is dead
        over = await until(quick, clock=self.clock, timeout_ms=_PATIENCE_MS)
        left = {"still_late_ms": round(max(0.0, last[0] - self._base_ms))} if last else {}
        return Probe(clear and over, {"links_clear": clear, **left})

    async def _measured(self, pings: int) -> list[float]:
        """How long pings on these links take, one after the other; without those that are not answered."""
        found = []
        for number in range(pings):
            link = self._links[number % len(self._links)]
            found.append(await self._took_ms(link))
        return [each for each in found if each is not None]

    async def _took_ms(self, link: str) -> float | None:
        return await self.cluster.links.ping(link, timeout_ms=_PATIENCE_MS, size_bytes=self.burst_bytes)
