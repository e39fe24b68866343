"""``hold-markers``: WriteTxnMarkers from a coordinator to one broker is held back for a while.

The transaction is decided, but stays open in its partitions on that broker: their last stable offset does not advance.
The held request is delivered at the end, long after the coordinator has resent it.
"""

from __future__ import annotations

from itertools import cycle
from typing import ClassVar

from chaos.faults.base import Fault, PreconditionMissing, Probe, Reach, until
from chaos.faults.broker_links import links_to_brokers
from chaos.faults.damage import OCCASION_MS, FrameAct
from chaos.faults.steps import choose_seat
from cluster.protocol.apis import ApiKey

#: How long to wait for markers on one link before trying the next one.
_PATIENCE_MS = 2_500


class HoldMarkers(Fault):
    """Bites when WriteTxnMarkers to a broker were held back."""

    name = "hold-markers"
    summary = "hold back WriteTxnMarkers from a transaction coordinator to another broker"
    reach: ClassVar[Reach] = "other-links"
    duration_s = (2.5, 4.0)
    recovery_s = 3.0
    hits = "traffic"
    least_brokers = 2
    acts_on_frames = True
    needs_coordinator = "transaction"
    targets = ("partition", "transactional_id")

    async def choose(self) -> str:
        wanted = self.injection.target.get("transactional_id")
        seat = await choose_seat(self.cluster, "transaction", self.random, wanted)
        self._broker_id = seat.broker_id
        self._links = links_to_brokers(self.cluster.link_names, seat.broker_id)
        if not self._links:
            raise PreconditionMissing(f"broker {seat.broker_id} has no link to another broker")
        self.random.shuffle(self._links)
        return str(seat)

    async def inject(self) -> None:
        give_up_ms = self.clock.monotonic_ms() + OCCASION_MS
        for link in cycle(self._links):
            self._link = link
            await self.damage.act_on_frames([link], FrameAct("hold", (int(ApiKey.WRITE_TXN_MARKERS),), "request"))
            if await until(self._holds, clock=self.clock, timeout_ms=_PATIENCE_MS, interval_ms=20):
                return
            await self.damage.heal()
            if self.clock.monotonic_ms() >= give_up_ms:
                return

    async def _holds(self) -> bool:
        return (await self.damage.frame_counts()).acted > 0

    async def bites(self) -> Probe:
        counts = await self.damage.frame_counts()
        seen = {"broker": self._broker_id, "markers_link": self._link, "frames_hit": counts.acted}
        return Probe(counts.acted > 0, seen)

    async def heal(self) -> None:
        self._hit = (await self.damage.frame_counts()).acted
        await self.damage.heal()

    async def gone(self) -> Probe:
        clear = await self.damage.clear()
        rejoined = await self._rejoined()
        return Probe(clear and rejoined, {"links_clear": clear, "frames_hit": self._hit, "isr_full": rejoined})
