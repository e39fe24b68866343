"""The interface of links to faults, and ``Damage``, which notes what a fault did to links so that it can undo it.

Two faults may overlap on a link, so each undoes and checks only its own toxics. Does not own which links are broken
(each fault) or the calls to the proxy (``chaos.links``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Direction = Literal["request", "response", "both"]

#: How long a fault waits for a frame to act on. After the previous fault, the load may pause for a session and a
#: rebalance.
OCCASION_MS = 15_000


@dataclass(frozen=True, slots=True)
class LinkTraffic:
    """The proxy's counters of one link since it was created: bytes delivered and dropped in each direction.

    ``held_bytes`` are held back now; ``closed_connections`` counts connections that have ended.
    """

    request_bytes: int
    response_bytes: int
    dropped_request_bytes: int
    dropped_response_bytes: int
    held_bytes: int
    closed_connections: int


@dataclass(frozen=True, slots=True)
class Marks:
    """The toxics that one call put on one link, by their unique names. ``model`` says how packet loss is modeled."""

    link: str
    toxics: tuple[str, ...]
    model: str = ""


@dataclass(frozen=True, slots=True)
class FrameAct:
    """What to do to frames of some APIs (docs/proxy.md "Frames").

    Acts on ``count`` frames of each link (0 for all), after the first ``skip``. ``lossy``: held frames are dropped when
    the hold ends. ``delay_ms`` is for delays. ``kept_bytes`` is for cuts: how much of a frame is delivered before its
    connection closes.
    """

    act: Literal["hold", "delay", "drop", "repeat", "cut", "close"]
    api_keys: tuple[int, ...]
    direction: Literal["request", "response"]
    count: int = 0
    lossy: bool = False
    delay_ms: int = 0
    skip: int = 0
    kept_bytes: int = 0


@dataclass(frozen=True, slots=True)
class FrameCounts:
    """How many frames matched, how many of them were acted on, and the longest delay of one in ms."""

    matched: int = 0
    acted: int = 0
    longest_ms: int = 0


class LinkControl(Protocol):
    """What a fault may do to links. A link's name begins with its opener: ``b2-b1``, ``producers-b3``, ``b1-zk``."""

    async def cut(self, link: str, direction: Direction, *, lossless: bool) -> Marks:
        """Let no bytes pass in this direction: hold them back if ``lossless``, else drop them."""
        ...

    async def stall(self, link: str, *, probability: float, min_ms: int, max_ms: int) -> Marks:
        """Hold random chunks back for a while, in both directions. The ``model`` of the result names the model."""
        ...

    async def delay(self, link: str, direction: Direction, *, latency_ms: int) -> Marks:
        """Delay all bytes in this direction by ``latency_ms``."""
        ...

    async def reset_connections(self, link: str, direction: Direction) -> Marks:
        """Reset each connection at its next bytes in this direction."""
        ...

    async def act_on_frames(self, link: str, act: FrameAct) -> Marks:
        """Act on single frames. Raises an error for an external Toxiproxy."""
        ...

    async def put_toxic(self, link: str, direction: Direction, kind: str, attributes: Mapping[str, int]) -> Marks:
        """Put a toxic of any type on a link."""
        ...

    async def take_down(self, link: str) -> Marks:
        """End the connections of a link, and refuse new ones."""
        ...

    async def ping(self, link: str, *, timeout_ms: int, size_bytes: int = 0) -> float | None:
        """The ms that requests of this size take to be answered through a link to a broker; None if they are not."""
        ...

    async def close_ms(self, link: str, *, timeout_ms: int) -> float | None:
        """The ms from when we close our side of a connection until the other side closes; None if it does not."""
        ...

    async def is_refused(self, link: str) -> bool:
        """Whether an attempt to connect is refused."""
        ...

    async def frame_counts(self, marks: Marks) -> FrameCounts:
        """What these toxics have done to frames so far."""
        ...

    async def heal(self, marks: Marks) -> None:
        """Remove these toxics; what other faults did to the link stays."""
        ...

    async def remaining(self, marks: Marks) -> tuple[str, ...]:
        """The toxics in ``marks`` that are still on the link, according to its proxy."""
        ...

    async def stats(self, link: str) -> LinkTraffic | None:
        """The counters of a link; None for an external Toxiproxy, which has none."""
        ...


class Damage:
    """The toxics of one fault. Each method acts on all of the given links at once."""

    def __init__(self, links: LinkControl) -> None:
        self._links = links
        self._marks: list[Marks] = []

    def __repr__(self) -> str:
        return f"Damage({', '.join(marks.link for marks in self._marks) or 'none'})"

    @property
    def model(self) -> str:
        """How the proxy models packet loss; "" if this fault does not."""
        return self._marks[0].model if self._marks else ""

    async def cut(self, links: Sequence[str], direction: Direction, *, lossless: bool) -> None:
        """Cut these links."""
        await self._keep(self._links.cut(link, direction, lossless=lossless) for link in links)

    async def stall(self, links: Sequence[str], *, probability: float, min_ms: int, max_ms: int) -> None:
        """Stall these links in both directions."""
        await self._keep(
            self._links.stall(link, probability=probability, min_ms=min_ms, max_ms=max_ms) for link in links
        )

    async def delay(self, links: Sequence[str], direction: Direction, *, latency_ms: int) -> None:
        """Delay what these links carry in this direction."""
        await self._keep(self._links.delay(link, direction, latency_ms=latency_ms) for link in links)

    async def reset_connections(self, link: str, direction: Direction) -> None:
        """Reset the connections of this link at their next bytes in this direction."""
        await self._keep([self._links.reset_connections(link, direction)])

    async def put_toxic(
        self, links: Sequence[str], direction: Direction, kind: str, attributes: Mapping[str, int]
    ) -> None:
        """Put a toxic of this type on these links."""
        await self._keep(self._links.put_toxic(link, direction, kind, attributes) for link in links)

    async def take_down(self, links: Sequence[str]) -> None:
        """End the connections of these links, and refuse new ones."""
        await self._keep(self._links.take_down(link) for link in links)

    async def act_on_frames(self, links: Sequence[str], act: FrameAct) -> None:
        """Act on frames of these links."""
        await self._keep(self._links.act_on_frames(link, act) for link in links)

    async def _keep(self, makings: Iterable[Awaitable[Marks]]) -> None:
        """Note each mark as soon as it is made, because another one may fail."""

        async def one(making: Awaitable[Marks]) -> None:
            self._marks.append(await making)

        await asyncio.gather(*map(one, makings))

    async def frame_counts(self) -> FrameCounts:
        """What all toxics of this fault have done to frames so far, without those that were removed."""
        found = await asyncio.gather(*(self._links.frame_counts(marks) for marks in self._marks))
        longest_ms = max((each.longest_ms for each in found), default=0)
        return FrameCounts(sum(each.matched for each in found), sum(each.acted for each in found), longest_ms)

    async def heal(self) -> None:
        """Remove whatever is left of the damage."""
        await asyncio.gather(*(self._links.heal(marks) for marks in self._marks))

    async def in_place(self) -> bool:
        """Whether there is damage, and all of it is in place."""
        left = await asyncio.gather(*(self._links.remaining(marks) for marks in self._marks))
        return bool(self._marks) and all(
            set(here) == set(marks.toxics) for here, marks in zip(left, self._marks, strict=True)
        )

    async def clear(self) -> bool:
        """Whether nothing of the damage is left."""
        return not any(await asyncio.gather(*(self._links.remaining(marks) for marks in self._marks)))


async def stats_of(links: LinkControl, names: Sequence[str]) -> list[LinkTraffic] | None:
    """The counters of these links, in the same order; None if the proxy has none."""
    found = await asyncio.gather(*(links.stats(name) for name in names))
    known = [stats for stats in found if stats is not None]
    return known if len(known) == len(found) else None
