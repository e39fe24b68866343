"""What a fault may do to links, and a record of what it did, so that it undoes exactly that. Decides nothing.

Two faults may overlap on one link: each heals and checks only its own toxics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Direction = Literal["request", "response", "both"]

#: How long a fault waits for a frame to act on. After the fault before, a load may stand still for a session and a
#: rebalance.
OCCASION_MS = 15_000


@dataclass(frozen=True, slots=True)
class LinkTraffic:
    """Counters of one link, as its proxy has them.

    Bytes delivered and dropped each way, bytes held back now, and connections that have ended.
    """

    request_bytes: int
    response_bytes: int
    dropped_request_bytes: int
    dropped_response_bytes: int
    held_bytes: int
    closed_connections: int


@dataclass(frozen=True, slots=True)
class Marks:
    """What one fault put on one link: the names of its toxics there, which are unique to it."""

    link: str
    toxics: tuple[str, ...]
    model: str = ""


@dataclass(frozen=True, slots=True)
class FrameAct:
    """What is done to frames of Kafka's of some APIs (docs/proxy.md "Frames"): to ``count`` of each link, 0 for all,
    after the first ``skip``.

    ``lossy``: held frames are dropped when the hold ends. ``delay_ms`` applies to delays, ``kept_bytes`` to cuts: how
    much of the frame is delivered before its connection closes.
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
    """How many frames have passed since then, how many of them were acted on, and the longest delay of one."""

    matched: int = 0
    acted: int = 0
    longest_ms: int = 0


class LinkControl(Protocol):
    """What a fault may do to links. A link is named opener first: ``b2-b1``, ``producers-b3``, ``b1-zk``.

    Faults may overlap on one link, so each undoes and checks only what it did itself.
    """

    async def cut(self, link: str, direction: Direction, *, lossless: bool) -> Marks:
        """Stop the bytes of one direction."""
        ...

    async def stall(self, link: str, *, probability: float, min_ms: int, max_ms: int) -> Marks:
        """Hold random chunks back for a while, both ways; ``model`` names the model in use."""
        ...

    async def delay(self, link: str, direction: Direction, *, latency_ms: int) -> Marks:
        """Delay what is sent by this much."""
        ...

    async def reset_connections(self, link: str, direction: Direction) -> Marks:
        """Reset each connection at its next bytes of that direction."""
        ...

    async def act_on_frames(self, link: str, act: FrameAct) -> Marks:
        """Act on single frames. Raises an error that says what to do if the proxy is not ours."""
        ...

    async def put_toxic(self, link: str, direction: Direction, kind: str, attributes: Mapping[str, int]) -> Marks:
        """Put any other toxic of Toxiproxy's on a link, by its type."""
        ...

    async def take_down(self, link: str) -> Marks:
        """End the connections of a link, and refuse new ones."""
        ...

    async def ping(self, link: str, *, timeout_ms: int, size_bytes: int = 0) -> float | None:
        """How many ms requests of our own of this size take to be answered through a link that leads to a broker; None
        if they are not."""
        ...

    async def close_ms(self, link: str, *, timeout_ms: int) -> float | None:
        """How many ms after the end of a connection of ours its other end comes; None if it does not."""
        ...

    async def is_refused(self, link: str) -> bool:
        """Whether a connection of ours is refused."""
        ...

    async def frame_counts(self, marks: Marks) -> FrameCounts:
        """What these toxics did to frames so far."""
        ...

    async def heal(self, marks: Marks) -> None:
        """Remove these toxics; what other faults did to the link stays."""
        ...

    async def remaining(self, marks: Marks) -> tuple[str, ...]:
        """Those of these toxics that are on the link now, according to its proxy."""
        ...

    async def stats(self, link: str) -> LinkTraffic | None:
        """None where the proxy is not ours and has no counters."""
        ...


class Damage:
    """The toxics of one fault."""

    def __init__(self, links: LinkControl) -> None:
        self._links = links
        self._marks: list[Marks] = []

    def __repr__(self) -> str:
        return f"Damage({', '.join(marks.link for marks in self._marks) or 'none'})"

    @property
    def model(self) -> str:
        """How the proxy models it, if there is a choice."""
        return self._marks[0].model if self._marks else ""

    async def cut(self, links: Sequence[str], direction: Direction, *, lossless: bool) -> None:
        """Cut all of these links at once."""
        await self._keep(self._links.cut(link, direction, lossless=lossless) for link in links)

    async def stall(self, links: Sequence[str], *, probability: float, min_ms: int, max_ms: int) -> None:
        """Stall all of these links at once, both ways."""
        await self._keep(
            self._links.stall(link, probability=probability, min_ms=min_ms, max_ms=max_ms) for link in links
        )

    async def delay(self, links: Sequence[str], direction: Direction, *, latency_ms: int) -> None:
        """Delay what runs over all of these links."""
        await self._keep(self._links.delay(link, direction, latency_ms=latency_ms) for link in links)

    async def reset_connections(self, link: str, direction: Direction) -> None:
        """Reset what runs over this link."""
        await self._keep([self._links.reset_connections(link, direction)])

    async def put_toxic(
        self, links: Sequence[str], direction: Direction, kind: str, attributes: Mapping[str, int]
    ) -> None:
        """Put a toxic of this type on all of these links."""
        await self._keep(self._links.put_toxic(link, direction, kind, attributes) for link in links)

    async def take_down(self, links: Sequence[str]) -> None:
        """End the connections of all of these links, and refuse new ones."""
        await self._keep(self._links.take_down(link) for link in links)

    async def act_on_frames(self, links: Sequence[str], act: FrameAct) -> None:
        """Act on frames of all of these links."""
        await self._keep(self._links.act_on_frames(link, act) for link in links)

    async def _keep(self, makings: Iterable[Awaitable[Marks]]) -> None:
        """Remember each mark as soon as it is made: another one may fail."""

        async def one(making: Awaitable[Marks]) -> None:
            self._marks.append(await making)

        await asyncio.gather(*map(one, makings))

    async def frame_counts(self) -> FrameCounts:
        """What all of it did to frames so far. Toxics that have been removed no longer count."""
        found = await asyncio.gather(*(self._links.frame_counts(marks) for marks in self._marks))
        longest_ms = max((each.longest_ms for each in found), default=0)
        return FrameCounts(sum(each.matched for each in found), sum(each.acted for each in found), longest_ms)

    async def heal(self) -> None:
        """Remove whatever is left of it."""
        await asyncio.gather(*(self._links.heal(marks) for marks in self._marks))

    async def in_place(self) -> bool:
        """Whether all of it is there."""
        left = await asyncio.gather(*(self._links.remaining(marks) for marks in self._marks))
        return bool(self._marks) and all(
            set(here) == set(marks.toxics) for here, marks in zip(left, self._marks, strict=True)
        )

    async def clear(self) -> bool:
        """Whether nothing of it is left."""
        return not any(await asyncio.gather(*(self._links.remaining(marks) for marks in self._marks)))


async def stats_of(links: LinkControl, names: Sequence[str]) -> list[LinkTraffic] | None:
    """The counters of these links; None where the proxy has none."""
    found = await asyncio.gather(*(links.stats(name) for name in names))
    known = [stats for stats in found if stats is not None]
    return known if len(known) == len(found) else None
