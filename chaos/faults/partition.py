"""The base of network partitions: cuts some links in both directions, while others stay intact. Pings show both.

Does not own which links are cut: each fault does. A link is directed, so two brokers have two links with each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from chaos.faults.accepted import truth
from chaos.faults.base import Fault, PreconditionMissing, Probe, Reach, until
from chaos.faults.damage import LinkTraffic, stats_of
from chaos.faults.link_fault import NO_COUNTERS

#: How long a probe waits for a ping through a link that is cut, and through one that is intact.
_SILENT_MS = 700
_ANSWER_MS = 3_000
_AGAIN_MS = 8_000


class NetworkPartition(Fault):
    """Bites when pings through the cut links get no answer, bytes are held or dropped on each of these links, and pings
    through the links that must stay intact are answered.

    It is over when pings through all of them are answered again and every replica is in its ISR.
    """

    reach: ClassVar[Reach] = "other-links"
    #: Long enough for followers that cannot fetch to leave the ISR.
    duration_s = (6.0, 8.0)
    recovery_s = 3.5
    accepts = (truth("lossless"),)

    _links: list[str]
    _whole: Sequence[str]

    def _cuts(self, links: Iterable[str], whole: Iterable[str]) -> str:
        """Set the links to cut and the ones that must stay intact. Returns a description for the record."""
        # in a cluster that gapless did not start, only links of clients exist
        self._links, self._whole = list(links), [link for link in whole if link in self.cluster.link_names]
        self._lossless = bool(self.injection.parameters.get("lossless", self.random.random() < 0.5))
        if missing := [link for link in self._links if link not in self.cluster.link_names]:
            raise PreconditionMissing(f"there is no link {missing[0]!r}")
        return f"{', '.join(self._links)}, {'lossless' if self._lossless else 'lossy'}"

    async def inject(self) -> None:
        self._reaction = await self.cluster.reaction()
        self._answered_before = len(await self._pinged(self._links, _ANSWER_MS))
        self._before = await stats_of(self.cluster.links, self._links)
        await self.damage.cut(self._links, "both", lossless=self._lossless)

    async def bites(self) -> Probe:
        answered, whole = await asyncio.gather(
            self._pinged(self._links, _SILENT_MS), self._pinged(self._whole, _ANSWER_MS)
        )
        seen: dict[str, object] = {"links": self._links, "lossless": self._lossless}
        seen |= {"pings_before": self._answered_before, "pings_lost": len(self._links) - len(answered)}
        seen |= {"pings_elsewhere": len(whole)}
        hit = await self._stopped_on_each(seen)
        silent = not answered and self._answered_before == len(self._links)
        return Probe(hit and silent and len(whole) == len(self._whole), seen)

    async def _stopped_on_each(self, seen: dict[str, object]) -> bool:
        """Whether bytes were held or dropped on each cut link. Without counters, whether the toxics are in place."""
        now = await stats_of(self.cluster.links, self._links)
        if now is None or self._before is None:
            seen["counters"] = NO_COUNTERS
            return await self.damage.in_place()
        stopped = [_stopped(one, other) for one, other in zip(self._before, now, strict=True)]
        seen["held_bytes" if self._lossless else "dropped_bytes"] = sum(stopped)
        return all(each > 0 for each in stopped)

    async def heal(self) -> None:
        await self.damage.heal()

    async def gone(self) -> Probe:
        clear = await self.damage.clear()
        rejoined = await self._rejoined()
        reachable = [link for link in self._links if await self._leads_to_one_that_runs(link)]
        left = set(reachable)

        async def all_answer() -> bool:
            left.difference_update(await self._pinged(sorted(left), _ANSWER_MS))
            return not left

        again = await until(all_answer, clock=self.clock, timeout_ms=_AGAIN_MS)
        seen = {"links_clear": clear, "isr_full": rejoined, "pings_again": len(reachable) - len(left)}
        return Probe(clear and rejoined and again, {**seen, **await self._reacted()})

    async def _reacted(self) -> Mapping[str, object]:
        return (await self.cluster.reaction()).since(self._reaction).figures()

    async def _pinged(self, links: Sequence[str], timeout_ms: int) -> list[str]:
        """The links through which a ping is answered within ``timeout_ms``."""
        pings = await asyncio.gather(*(self.cluster.links.ping(link, timeout_ms=timeout_ms) for link in links))
        return [link for link, took_ms in zip(links, pings, strict=True) if took_ms is not None]


def between(some: Iterable[int], others: Iterable[int]) -> list[str]:
    """The links from these brokers to the others, and from the others to these brokers."""
    pairs = [(one, other) for one in some for other in others]
    return [link for one, other in pairs for link in (f"b{one}-b{other}", f"b{other}-b{one}")]


def _stopped(before: LinkTraffic, now: LinkTraffic) -> int:
    """The bytes that are held now, plus those that were dropped since ``before``."""
    dropped = now.dropped_request_bytes + now.dropped_response_bytes
    return now.held_bytes + dropped - before.dropped_request_bytes - before.dropped_response_bytes
