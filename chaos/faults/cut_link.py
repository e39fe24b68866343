"""``cut-link``: stop one directed link, its requests or its responses only, lossless or lossy.

A lossless cut holds the bytes back and delivers all of them at heal, as TCP does after a network pause; a lossy one
drops them, and the connection closes at heal. The record says which it was (docs/faults.md).
"""

from __future__ import annotations

import asyncio
from typing import Any

from chaos.faults.accepted import one_way, truth
from chaos.faults.base import PreconditionMissing, Probe, until
from chaos.faults.damage import Direction, LinkTraffic, stats_of
from chaos.faults.link_fault import NO_COUNTERS, LinkFault
from chaos.faults.pause_zookeeper import asked_within_ms
from cluster.seams.units import seconds_of_ms

#: A link counts as cut if no byte passes for this long.
_QUIET_MS = 300
#: Clients and brokers send something at least this often on a link that they use.
_SENT_MS = 2_000


class CutLink(LinkFault):
    """Bites when links that were carrying bytes carry none anymore, and hold them back (or drop them, if lossy).

    The target is one link, picked by the seed, or ``link: NAME``, or ``link: followers``: every link on which a
    follower fetches from the leader of the partition.
    """

    name = "cut-link"
    summary = "stop one directed link, requests or responses only, lossless or lossy"
    duration_s = (2.0, 5.0)
    recovery_s = 2.5
    hits = "link"
    targets = ("partition", "link")
    takes_followers = True
    accepts = (one_way("direction"), truth("lossless"))

    async def choose(self) -> str:
        wanted = self.injection.target.get("link")
        leader, _ = await self._leader()
        fetching = [f"b{broker}-b{leader}" for broker in await self._followers(leader)]
        # in a cluster that gapless did not start, only links of clients exist
        fetching = [link for link in fetching if link in self.cluster.link_names]
        if wanted == "followers":
            if not fetching:
                raise PreconditionMissing(f"no follower of broker {leader} runs")
            self._links = fetching
        elif wanted is not None:
            self._links = [str(wanted)]
        else:
            self._links = [self.random.choice([*fetching, f"producers-b{leader}"])]
        for link in self._links:
            if link not in self.cluster.link_names:
                raise PreconditionMissing(f"there is no link {link!r}")
        parameters = self.injection.parameters
        either: list[Direction] = ["request", "response"]
        self._direction: Direction = parameters.get("direction") or self.random.choice(either)
        self._lossless = bool(parameters.get("lossless", self.random.random() < 0.5))
        how = "lossless" if self._lossless else "lossy"
        return f"{', '.join(self._links)}, {self._direction}s only, {how}"

    async def _followers(self, leader: int) -> list[int]:
        """The other brokers, if they run and are registered. The others fetch nothing that could be cut."""
        alive = await self.cluster.alive()
        return [broker for broker in await self._running() if broker != leader and broker in alive]

    async def inject(self) -> None:
        self._before = await self._stats()
        await self.damage.cut(self._links, self._direction, lossless=self._lossless)

    async def bites(self) -> Probe:
        in_place = await self.damage.in_place()
        first = await self._stats()
        await asyncio.sleep(seconds_of_ms(_QUIET_MS))
        second = await self._stats()
        seen: dict[str, Any] = {"links": self._links, "direction": self._direction, "lossless": self._lossless}
        seen["toxic_in_place"] = in_place
        if first is None or second is None or self._before is None:
            seen["counters"] = NO_COUNTERS
            return Probe(in_place, seen)
        carried_before = self._carried(self._before)
        quiet = self._carried(second) == self._carried(first)
        seen |= {"carried_before_bytes": carried_before, "quiet_ms": _QUIET_MS, "quiet": quiet}
        bitten = in_place and quiet and carried_before > 0
        stops = self._holds(seen) if self._lossless else self._loses(self._before, seen)
        return Probe(await stops and bitten, seen)

    async def gone(self) -> Probe:
        clear = await self.damage.clear()
        before = await self._stats()

        async def flows() -> bool:
            now = await self._stats()
            return now is None or before is None or self._carried(now) > self._carried(before)

        # a link to a broker that died or leads nothing anymore may stay silent, so this is only recorded
        flowing = await until(flows, clock=self.clock, timeout_ms=3_000)
        return Probe(clear, {"clear": clear, "flows_again": flowing})

    async def _holds(self, seen: dict[str, object]) -> bool:
        """Whether bytes are held back. Without this check, an idle link would look like one that is cut."""

        async def held() -> bool:
            now = await self._stats()
            seen["held_bytes"] = held_bytes = 0 if now is None else sum(each.held_bytes for each in now)
            return held_bytes > 0

        return await until(held, clock=self.clock, timeout_ms=self._patience_ms())

    def _patience_ms(self) -> int:
        """How long it may take in ms until something is sent. (A broker pings ZooKeeper if it has no request.)"""
        to_zookeeper = any(link.endswith("-zk") for link in self._links)
        return max(_SENT_MS, asked_within_ms(self.cluster.session_timeout_ms) if to_zookeeper else 0)

    async def _loses(self, before: list[LinkTraffic], seen: dict[str, Any]) -> bool:
        async def dropped() -> bool:
            now = await self._stats()
            seen["dropped_bytes"] = 0 if now is None else self._dropped(now) - self._dropped(before)
            return bool(seen["dropped_bytes"] > 0)

        return await until(dropped, clock=self.clock, timeout_ms=self._patience_ms())

    async def _stats(self) -> list[LinkTraffic] | None:
        return await stats_of(self.cluster.links, self._links)

    def _carried(self, stats: list[LinkTraffic]) -> int:
        return sum(each.request_bytes if self._direction == "request" else each.response_bytes for each in stats)

    def _dropped(self, stats: list[LinkTraffic]) -> int:
        return sum(
            each.dropped_request_bytes if self._direction == "request" else each.dropped_response_bytes
            for each in stats
        )
