"""The base of faults on single frames: chooses the API, the first frame, the number of frames, and the links.

Does not own what is done to these frames, or what shows it: each fault does. A response belongs to the API of its
request.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, Literal

from chaos.faults.accepted import Rule, integer
from chaos.faults.base import PreconditionMissing, Probe, until
from chaos.faults.damage import FrameAct, LinkTraffic, stats_of
from chaos.faults.frame_fault import FrameFault
from chaos.faults.link_fault import NO_COUNTERS
from cluster.protocol.apis import ApiKey

#: Kafka's name of each API (``Produce``, ``LeaderAndIsr``) -> its key.
APIS = {each.name.title().replace("_", ""): each for each in ApiKey}

#: The parameters that all these faults have.
WHICH_FRAMES: tuple[Rule, ...] = (
    Rule("api", "the name of an API of Kafka's (Produce, Fetch, Metadata, ...)", lambda value: value in APIS),
    integer("nth", 1, 1_000_000),
    integer("count", 1, 1_000_000),
)


class RequestFault(FrameFault):
    """Acts on frames of one ``link: NAME``, or of all links of clients and brokers to the leader of the partition.

    ``nth`` and ``count`` apply to each link separately.
    """

    hits_client_links = True
    targets = ("partition", "link")
    accepts: ClassVar[tuple[Rule, ...]] = WHICH_FRAMES
    #: The APIs to draw from: leaders get these requests all the time.
    drawn_apis: ClassVar[tuple[str, ...]] = ("Produce", "Fetch")

    _direction: Literal["request", "response"] = "request"

    async def choose(self) -> str:
        wanted, parameters = self.injection.target.get("link"), self.injection.parameters
        self._api = str(parameters.get("api") or self.random.choice(self.drawn_apis))
        self._nth = int(parameters.get("nth") or self.random.randint(1, 5))
        self._direction = self._drawn_direction()
        if wanted is None:
            leader, _ = await self._leader()
            self._links = [name for name in self.cluster.link_names if name.endswith(f"-b{leader}")]
        else:
            self._links = [name for name in self.cluster.link_names if name == wanted and not name.endswith("-zk")]
        if not self._links:
            raise PreconditionMissing(f"there is no link {wanted!r} to a broker")
        self._where = {"links": self._links, "api": self._api, "nth": self._nth, "direction": self._direction}
        return f"{', '.join(self._links)}: {self._api} {self._direction}s from number {self._nth} on, {self._draw()}"

    def _drawn_direction(self) -> Literal["request", "response"]:
        return "request"

    @abstractmethod
    def _draw(self) -> str:
        """Draw the other values that the parameters do not set. Returns what is done, in words, for the record."""

    def _count(self, drawn: int) -> int:
        return int(self.injection.parameters.get("count") or drawn)

    async def inject(self) -> None:
        self._before = await stats_of(self.cluster.links, self._links)
        await super().inject()

    async def _with_consequence(
        self, acted: Probe, entry: str, counter: Callable[[LinkTraffic], int], timeout_ms: float
    ) -> Probe:
        """Add to the probe ``acted`` whether ``counter`` has grown on these links since the injection, as ``entry``."""
        seen = dict(acted.seen)

        async def grown() -> bool:
            now = await stats_of(self.cluster.links, self._links)
            if now is None or self._before is None:
                seen["counters"] = NO_COUNTERS
                return True
            seen[entry] = sum(map(counter, now)) - sum(map(counter, self._before))
            return bool(seen[entry] > 0)

        return Probe(acted.effective and await until(grown, clock=self.clock, timeout_ms=timeout_ms), seen)

    def _on_these(self, act: Literal["delay", "repeat", "cut", "close"], count: int) -> FrameAct:
        return FrameAct(act, (int(APIS[self._api]),), self._direction, count, skip=self._nth - 1)
