"""``double-failover``: the leader of a partition dies, and so does the next one before the first is back in the ISR.

This is the schedule of KIP-101, KIP-279 and KAFKA-7128: a partition is led by one broker, then by another, and then a
third one must take over, or the first one with whatever it still has. There are three variants:

- ``tail``: the first leader has records that no other broker has. Its followers are cut off just before it dies, too
  briefly for them to leave the ISR.
- ``next_tail``: no other broker has any record of the next leader's epoch. Its followers are cut off from the start.
- ``ahead``: the next leader is ahead of the others, which are dead when the first leader dies. They lack what was
  committed since they left the ISR, and the next leader does not know that it was committed.
"""

from __future__ import annotations

import asyncio

from chaos.faults.accepted import truth
from chaos.faults.base import Probe, until
from chaos.faults.damage import FrameAct
from chaos.faults.drop_response import BATCHES
from chaos.faults.kill_several import KillSeveral
from cluster.protocol.apis import ApiKey

#: The probabilities that the first leader is restarted while the next one dies, and that it has a tail.
_BACK, _TAIL = 0.5, 0.75
#: How long the first leader's followers cannot fetch before it dies: much less than ``replica.lag.time.max.ms``.
_ALONE_S = 0.8
_TO_FOLLOWERS = FrameAct("hold", (int(ApiKey.FETCH), int(ApiKey.OFFSET_FOR_LEADER_EPOCH)), "response", lossy=True)
#: How long producers may take to find the next leader, and how long it then lives.
_FOUND_MS, _NEXT_ALONE_S = 5_000, 0.3
#: How much longer than the others the next leader fetches. This is less than a session, after which they leave the ISR.
_AHEAD_S = 0.5
#: How long the first leader may then take to commit what the next one has fetched. The next one may have to fetch again
#: after a timeout.
_CONFIRMED_MS = 6_000
#: How long the restarted others get no answer from the next leader. A leader that adds them to the ISR too early may
#: drop them again.
_UNANSWERED_MS = 8_000


class DoubleFailover(KillSeveral):
    """Bites when both processes are gone, each having led the partition, and the first was not back in the ISR."""

    name = "double-failover"
    summary = "SIGKILL the leader of a partition, and the next leader before the first is back in the ISR; restart both"
    least_replicas = 3
    needs_sync = True
    accepts = (truth("back"), truth("tail"), truth("next_tail"), truth("ahead"))

    async def choose(self) -> str:
        await self._begin()
        self._first, _ = await self._leader()
        await self._full_isrs()
        # a clean election takes the first replica of the assignment that lives and is in sync
        replicas = await self.cluster.replicas(self._partition)
        self._next = next(each for each in replicas if each != self._first)
        drawn_back, drawn_tail = self.random.random() < _BACK, self.random.random() < _TAIL
        back, tail = self.injection.parameters.get("back"), self.injection.parameters.get("tail")
        self._is_back = drawn_back if back is None else bool(back)
        # in a cluster that gapless did not start, links between brokers cannot be cut
        can_cut = f"b{self._next}-b{self._first}" in self.cluster.link_names
        self._has_tail = can_cut and (drawn_tail if tail is None else bool(tail))
        self._others = [each for each in replicas if each not in (self._first, self._next)]
        self._next_has_tail = can_cut and bool(self.injection.parameters.get("next_tail", False))
        self._is_ahead = can_cut and bool(self.injection.parameters.get("ahead", False))
        first = f"broker {self._first}, leader of {self.cluster.topic}-{self._partition}"
        alone = ", after its followers could not fetch" if self._has_tail and not self._is_ahead else ""
        if self._is_ahead:
            alone = f", after {' and '.join(f'broker {each}' for each in self._others)}"
        while_it = "starts again" if self._is_back else "is down"
        return f"{first}{alone}, then broker {self._next}, its next leader, while it {while_it}"

    async def inject(self) -> None:
        if self._is_ahead:
            await self._let_next_be_ahead()
        elif self._has_tail:
            followers = [each for each in await self.cluster.replicas(self._partition) if each != self._first]
            # lossy, because held responses would reach the followers after the leader's death
            await self.damage.cut([f"b{each}-b{self._first}" for each in followers], "response", lossless=False)
            await asyncio.sleep(_ALONE_S)
        before = await self._batches_of_next() if self._next_has_tail else 0.0
        await self._kill(self._first)
        await self.damage.heal()
        if self._next_has_tail or self._is_ahead:
            await self._hold(self._others, self._next)
        self._took_over = await until(self._next_leads, clock=self.clock, timeout_ms=self.patience_ms)
        if not self._took_over:
            # record which broker should have died, and that it did not
            pid = self.cluster.process(self._next).pid
            self._steps.append({"broker": self._next, "pid": pid, "dead": False})
            return
        # wait, because the next leader may have led before: a preferred election may follow the choice of the target
        await until(self._first_is_out, clock=self.clock, timeout_ms=self.patience_ms)
        if self._is_ahead:
            await self._others_join()
        elif self._next_has_tail:
            await self._written_to_next(before)
        start = asyncio.create_task(self.cluster.restart(self._first)) if self._is_back else None
        self._was_in_isr = not await self._first_is_out()
        await self._kill(self._next)
        await self.damage.heal()
        if start is not None:
            await start

    async def _hold(self, followers: list[int], leader: int) -> None:
        """Keep the leader's fetch responses from these followers. Other frames pass: one may be the controller."""
        links = [f"b{each}-b{leader}" for each in followers]
        if await self.cluster.links.stats(links[0]) is None:
            # an external Toxiproxy cannot act on frames; this cut may even keep the leader from learning that it leads
            await self.damage.cut(links, "response", lossless=False)
        else:
            await self.damage.act_on_frames(links, _TO_FOLLOWERS)

    async def _let_next_be_ahead(self) -> None:
        """Kill the others, and let the first leader commit records that only it and the next leader have.

        These are committed once the others are out of the ISR. Before that, the first leader's fetch responses to the
        next leader are held, so that the next leader does not learn of the commit.
        """
        await self._kill_at_once(self._others)
        await asyncio.sleep(_AHEAD_S)
        await self._hold([self._next], self._first)
        await until(self._are_dropped, clock=self.clock, timeout_ms=self.patience_ms)
        before = await self._acknowledged_ns()

        async def confirmed() -> bool:
            return await self._acknowledged_ns() > before

        await until(confirmed, clock=self.clock, timeout_ms=_CONFIRMED_MS)

    async def _acknowledged_ns(self) -> int:
        """When a record was last acknowledged in the partition, in monotonic ns; 0 if never."""
        load = self.cluster.load
        if load is None:
            return 0
        return max([await load.last_acked_ns(each, self._partition) for each in load.processes("producers")], default=0)

    async def _are_dropped(self) -> bool:
        isr = await self.cluster.isr(self._partition)
        return bool(isr) and isr.isdisjoint(self._others)

    async def _others_join(self) -> None:
        """Restart the others and wait until they are in the ISR.

        They should join only after they get responses and have everything that the next leader's epoch began with.
        """
        await asyncio.gather(*map(self.cluster.restart, self._others))
        if not await until(self._are_in_sync, clock=self.clock, timeout_ms=_UNANSWERED_MS):
            await self.damage.heal()
            await until(self._are_in_sync, clock=self.clock, timeout_ms=self.patience_ms)

    async def _are_in_sync(self) -> bool:
        return (await self.cluster.isr(self._partition)).issuperset(self._others)

    async def _written_to_next(self, before: float) -> None:
        """Wait until producers have written to the next leader, whose records no other broker has.

        ``before`` is its number of batches before the election: by now, producers may have as many requests in flight
        as they may, and so write nothing more.
        """

        async def written() -> bool:
            return await self._batches_of_next() > before

        await until(written, clock=self.clock, timeout_ms=_FOUND_MS)
        await asyncio.sleep(_NEXT_ALONE_S)

    async def _batches_of_next(self) -> float:
        return await self.cluster.counter(self._next, BATCHES) or 0

    async def _next_leads(self) -> bool:
        found = await self.cluster.leader(self._partition)
        return found is not None and found[0] == self._next

    async def _first_is_out(self) -> bool:
        """Whether the first leader is out of the ISR; False if no broker reports the ISR."""
        isr = await self.cluster.isr(self._partition)
        return bool(isr) and self._first not in isr

    async def heal(self) -> None:
        await self.damage.heal()
        await super().heal()

    async def bites(self) -> Probe:
        moved = self._took_over and await self._moved_from(self._next, self.patience_ms)
        is_double = self._all_died and len(self._steps) > 1 and moved and not self._was_in_isr
        return Probe(is_double, {"steps": self._steps, "leader_moved": moved, **await self._reacted()})
