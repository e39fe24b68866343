"""``elect-unclean``: a replica from outside the ISR becomes leader on request; the records it lacks are lost (KIP-460).

One replica is kept from fetching until it is out of the ISR, while the others still acknowledge. Then all the others
die at once: the partition has no leader, and no replica that may become one. In this situation, an operator may abandon
the missing records and order the election (ElectLeaders, type UNCLEAN). The fault loses acknowledged records by design.
So a run has it only if it is requested by name, and its verdict allows such losses in that partition until the fault is
over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import ClassVar

from chaos.faults.base import PreconditionMissing, Probe, Reach, until
from chaos.faults.damage import FrameAct
from chaos.faults.drop_response import BATCHES
from chaos.faults.kill_several import KillSeveral
from cluster.protocol.apis import ApiKey
from cluster.seams.units import seconds_of_ms
from verifier.evidence.fault_kinds import NOT_ORDERED, ORDERED_NS

#: The reason of such an election in the controller's journal.
REASON = "unclean election on request"
#: How long the replica may take to leave the ISR: ``replica.lag.time.max.ms``, and more on a slow machine.
_OUT_MS = 30_000
#: The least time for which the others then acknowledge without it.
_WITHOUT_MS = 700
_WRITTEN_MS = 5_000
#: How long the order may take to be carried out, and every broker that runs to learn of it.
_ORDER_MS = 30_000
_FETCHES = FrameAct("hold", (int(ApiKey.FETCH), int(ApiKey.OFFSET_FOR_LEADER_EPOCH)), "response", lossy=True)


class ElectUnclean(KillSeveral):
    """Bites when the others were acknowledging without the replica, died, and it leads the partition in a later epoch
    that the controllers' journals have with that reason. It is over when all are back and agree."""

    name = "elect-unclean"
    summary = (
        "kill the whole ISR of a partition and have a replica from outside of it elected (ElectLeaders); it loses "
        "acknowledged records, and only its name draws it"
    )
    reach: ClassVar[Reach] = "journals"
    duration_s = (1.0, 2.0)
    recovery_s = 8.0
    needs_sync = True
    loses_data = True
    by_name_alone = True

    async def choose(self) -> str:
        await self._begin()
        self._led_by, self._epoch = await self._leader()
        await self._full_isrs()
        replicas = await self.cluster.replicas(self._partition)
        followers = [each for each in replicas if each != self._led_by]
        if not followers:
            raise PreconditionMissing(f"partition {self._partition} has no follower")
        self._left = self.random.choice(followers)
        self._isr = [each for each in replicas if each != self._left]
        self._is_out = self._was_written = self._was_alone = False
        self._said: list[str] = []
        self._ordered_ns: int | None = None
        place = f"{self.cluster.topic}-{self._partition}"
        # the brokers of a target are those that the fault hits
        return f"partition {place}, from brokers {', '.join(map(str, self._isr))} to replica {self._left}"

    async def inject(self) -> None:
        self._elections = await self.cluster.elections(self.cluster.topic, self._partition, REASON)
        link = f"b{self._left}-b{self._led_by}"
        if await self.cluster.links.stats(link) is None:
            # an external Toxiproxy knows no frames
            await self.damage.cut([link], "response", lossless=False)
        else:
            await self.damage.act_on_frames([link], _FETCHES)
        self._is_out = await until(self._left_isr, clock=self.clock, timeout_ms=_OUT_MS)
        if not self._is_out:
            return
        before = await self.cluster.counter(self._led_by, BATCHES) or 0

        async def written() -> bool:
            return (await self.cluster.counter(self._led_by, BATCHES) or 0) > before

        self._was_written = await until(written, clock=self.clock, timeout_ms=_WRITTEN_MS)
        await asyncio.sleep(seconds_of_ms(_WITHOUT_MS))
        # the leader may have changed meanwhile; the ISR that dies must not include the replica to be elected
        isr = await self.cluster.isr(self._partition)
        if self._left in isr:
            self._is_out = False
            return
        await self._kill_at_once(self._isr)
        await self.damage.heal()
        self._was_alone = await until(self._leaderless, clock=self.clock, timeout_ms=self.patience_ms)
        if self._was_alone:
            await self._order()

    async def bites(self) -> Probe:
        led = self._said[-1:] == ["NONE"] and await until(self._leads, clock=self.clock, timeout_ms=_ORDER_MS)
        began = await self.cluster.elections(self.cluster.topic, self._partition, REASON) - self._elections
        seen = {
            "steps": self._steps,
            "left_isr": self._is_out,
            "written_without": self._was_written,
            "leaderless": self._was_alone,
            **self.deeds(),
            "elected": self._left,
            "leader_moved": led,
            "elections": began,
            **await self._reacted(),
        }
        return Probe(self._all_died and self._was_written and led and began > 0, seen)

    def deeds(self) -> Mapping[str, object]:
        """When the election was ordered, and the answers; the verdict depends on both."""
        if self._ordered_ns is None:
            return {"answer": NOT_ORDERED}
        # if the fault failed while it waited for the first answer, there is none
        return {"answer": (self._said or ["none"])[-1], "all_answers": self._said, ORDERED_NS: self._ordered_ns}

    async def heal(self) -> None:
        await self.damage.heal()
        await super().heal()

    def bit(self, during: Probe, after: Probe) -> bool:
        """Also requires that the restarted brokers truncated records that the elected replica did not have."""
        return super().bit(during, after) and after.seen.get("truncations", 0) > 0

    async def _left_isr(self) -> bool:
        isr = await self.cluster.isr(self._partition)
        return bool(isr) and self._left not in isr

    async def _leaderless(self) -> bool:
        return await self.cluster.leader(self._partition) is None

    async def _leads(self) -> bool:
        found = await self.cluster.leader(self._partition)
        return found is not None and found[0] == self._left and found[1] > self._epoch

    async def _order(self) -> None:
        """Order the election until a controller carries it out or the time is over, and note each new answer."""

        async def done() -> bool:
            try:
                said = await self.cluster.orders.elect_unclean(self.cluster.topic, self._partition)
            except TimeoutError:
                said = "REQUEST_TIMED_OUT"
            if self._said[-1:] != [said]:
                self._said.append(said)
            return said == "NONE"

        self._ordered_ns = self.clock.monotonic_ns()
        await until(done, clock=self.clock, timeout_ms=_ORDER_MS, interval_ms=200)
