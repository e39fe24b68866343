"""The base of faults that slow down the links of clients: pings before, during and after show by how much.

Owns the measurement, which needs no counters of the proxy and so works with an external Toxiproxy. Does not own which
toxic is used, or by how much it must delay pings: each fault defines that.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from chaos.faults.base import PreconditionMissing, Probe, until
from chaos.faults.link_fault import LinkFault

#: The share of the nominal delay that must be measured. The rest allows for timers and other requests.
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
        """The average time in ms by which the toxic delays a ping of ``burst_bytes``."""

    @property
    def burst_bytes(self) -> int:
        """How many bytes are sent to measure the link."""
        return 0

    @abstractmethod
    def toxic(self) -> tuple[str, Mapping[str, int]]:
        """The type of the toxic and its attributes."""

    @abstractmethod
    def draw(self) -> str:
        """Draw the values that the parameters do not set. Returns them in words, for the record."""

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
        # without a ping before the fault, the delay may not be due to the fault
        is_late = self._is_measured and mean_ms >= ENOUGH * self.nominal_ms
        return Probe(is_late and more.effective, {**seen, **more.seen})

    async def _more(self, late_ms: list[float]) -> Probe:
        """Any further condition on the measurements."""
        return Probe(True)

    async def gone(self) -> Probe:
        clear = await self.damage.clear()
        last: list[float] = []

        async def quick() -> bool:
            last[:] = await self._measured(1)
            return not last or last[0] - self._base_ms < ENOUGH * self.nominal_ms

        # no answer at all means that another fault has killed the broker
        over = await until(quick, clock=self.clock, timeout_ms=_PATIENCE_MS)
        left = {"still_late_ms": round(max(0.0, last[0] - self._base_ms))} if last else {}
        return Probe(clear and over, {"links_clear": clear, **left})

    async def _measured(self, pings: int) -> list[float]:
        """The times in ms of this many pings, one after the other, on the links in turn. Skips unanswered ones."""
        found = []
        for number in range(pings):
            link = self._links[number % len(self._links)]
            found.append(await self._took_ms(link))
        return [each for each in found if each is not None]

    async def _took_ms(self, link: str) -> float | None:
        return await self.cluster.links.ping(link, timeout_ms=_PATIENCE_MS, size_bytes=self.burst_bytes)
