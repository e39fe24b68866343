"""``LinkControl`` for faults, on top of ``chaos.links``: runs each blocking call in a thread and names each damage.

Owns these names (marks), which keep several faults on one link apart, and notes which marks hold a link down. Does not
own the calls to the proxy (``chaos.links``) or decide what is broken (``chaos.faults``).
"""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from chaos.faults.damage import Direction, FrameAct, FrameCounts, LinkTraffic, Marks
from chaos.links import Links, act_on_frames, frames_seen
from chaos.links.ping import close_ms, is_refused, ping

#: Long enough for an attempt to connect to be refused: on one machine, that happens at once.
_CONNECT_MS = 1_000
#: The prefix of marks that stand for a disabled link, and not for a toxic.
_DOWN = "down"


class AsyncLinks:
    """The links of a run, for callers on the event loop. Each call that does damage puts a new number in its marks."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._numbers = itertools.count(1)
        #: Link -> the marks that hold it down. It is enabled when the last of them is healed.
        self._down: defaultdict[str, set[str]] = defaultdict(set)
        self._switching = asyncio.Lock()

    async def cut(self, link: str, direction: Direction, *, lossless: bool) -> Marks:
        name = f"cut{next(self._numbers)}"
        return Marks(link, await asyncio.to_thread(self._links.cut, link, direction, lossless=lossless, name=name))

    async def stall(self, link: str, *, probability: float, min_ms: int, max_ms: int) -> Marks:
        name = f"stall{next(self._numbers)}"

        def both_ways() -> Marks:
            made = self._links.stall(link, "both", probability=probability, min_ms=min_ms, max_ms=max_ms, name=name)
            return Marks(link, made.toxics, made.kind)

        return await asyncio.to_thread(both_ways)

    async def delay(self, link: str, direction: Direction, *, latency_ms: int) -> Marks:
        name = f"delay{next(self._numbers)}"
        made = await asyncio.to_thread(self._links.delay, link, direction, latency_ms=latency_ms, name=name)
        return Marks(link, made)

    async def reset_connections(self, link: str, direction: Direction) -> Marks:
        name = f"reset{next(self._numbers)}"
        return Marks(link, await asyncio.to_thread(self._links.reset_connections, link, direction, name))

    async def act_on_frames(self, link: str, act: FrameAct) -> Marks:
        name = f"{act.act}{next(self._numbers)}"

        def one() -> str:
            more: dict[str, Any] = {"skip": act.skip, "count": act.count, "lossy": act.lossy}
            more |= {"delay_ms": act.delay_ms, "kept_bytes": act.kept_bytes}
            return act_on_frames(self._links, link, act.act, act.direction, act.api_keys, name=name, **more)

        return Marks(link, (await asyncio.to_thread(one),))

    async def frame_counts(self, marks: Marks) -> FrameCounts:
        asked = (asyncio.to_thread(frames_seen, self._links, marks.link, name) for name in marks.toxics)
        seen = [each for each in await asyncio.gather(*asked) if each is not None]
        longest_ms = max((each.longest_ms for each in seen), default=0)
        return FrameCounts(sum(each.matched for each in seen), sum(each.acted for each in seen), longest_ms)

    async def put_toxic(self, link: str, direction: Direction, kind: str, attributes: Mapping[str, int]) -> Marks:
        name = f"{kind}{next(self._numbers)}"
        return Marks(link, await asyncio.to_thread(self._links.add_each, link, direction, name, kind, dict(attributes)))

    async def take_down(self, link: str) -> Marks:
        name = f"{_DOWN}{next(self._numbers)}"
        async with self._switching:
            self._down[link].add(name)
            await asyncio.to_thread(self._links.disable, link)
        return Marks(link, (name,))

    async def ping(self, link: str, *, timeout_ms: int, size_bytes: int = 0) -> float | None:
        address = await self._address(link)
        return await asyncio.to_thread(ping, address, timeout_ms=timeout_ms, size_bytes=size_bytes)

    async def close_ms(self, link: str, *, timeout_ms: int) -> float | None:
        return await asyncio.to_thread(close_ms, await self._address(link), timeout_ms=timeout_ms)

    async def is_refused(self, link: str) -> bool:
        return await asyncio.to_thread(is_refused, await self._address(link), timeout_ms=_CONNECT_MS)

    async def _address(self, link: str) -> str:
        return (await asyncio.to_thread(self._links.show, link)).listen

    async def heal(self, marks: Marks) -> None:
        await asyncio.to_thread(self._links.heal, marks.link, marks.toxics)
        holding = self._down[marks.link]
        async with self._switching:
            for name in holding.intersection(marks.toxics):
                if holding == {name}:
                    await asyncio.to_thread(self._links.enable, marks.link)
                holding.discard(name)

    async def remaining(self, marks: Marks) -> tuple[str, ...]:
        state = await asyncio.to_thread(self._links.show, marks.link)
        there = {toxic.name for toxic in state.toxics}
        if not state.enabled:
            # if no mark is known to hold the disabled link down, it counts as what the caller's marks left behind
            there |= self._down[marks.link] or {name for name in marks.toxics if name.startswith(_DOWN)}
        return tuple(name for name in marks.toxics if name in there)

    async def stats(self, link: str) -> LinkTraffic | None:
        found = await asyncio.to_thread(self._links.stats, link)
        if found is None:
            return None
        return LinkTraffic(
            request_bytes=found.request.bytes_out,
            response_bytes=found.response.bytes_out,
            dropped_request_bytes=found.request.bytes_dropped,
            dropped_response_bytes=found.response.bytes_dropped,
            held_bytes=found.request.bytes_held + found.response.bytes_held,
            closed_connections=found.connections_closed,
        )
