"""``drop-response``: the broker carries out a Produce request, but its response never arrives.

The proxy holds Produce responses on a producers' link, and drops them with their connections when the fault ends,
within a second. The client must then resend batches that may have been stored already. Other responses pass, unless
they come after a held one, so that a transactional producer whose coordinator is the same broker still gets as far as
its Produce request. With an external Toxiproxy, which cannot act on frames, a ``timeout`` toxic drops all responses.

The fault bit only if responses were lost and a retry followed. The broker that stored the batch detects the retry by
its fingerprint; another broker that leads by then detects it by its sequence, as a duplicate.
"""

from __future__ import annotations

from operator import sub

from chaos.faults.base import Probe, until
from chaos.faults.damage import FrameAct
from chaos.faults.link_fault import LinkFault
from cluster.protocol.apis import ApiKey

RETRIES = "gapless_produce_retries_total"
DUPLICATES = "gapless_produce_duplicates_total"
BATCHES = "gapless_produce_batches_total"
_PRODUCE_RESPONSES = FrameAct("hold", (int(ApiKey.PRODUCE),), "response", lossy=True)


class DropResponse(LinkFault):
    """Bites when Produce responses were lost and a known batch was resent afterwards, according to brokers' counters.

    Brokers that gapless did not start have no such counters: there, dropped responses are enough.
    """

    name = "drop-response"
    summary = "drop the responses to producers for under a second, then disconnect; the retries repeat what was done"
    duration_s = (0.4, 0.8)
    recovery_s = 2.5
    hits_client_links = True
    needs_counters = True

    #: Defaults until the injection and the second probe set them.
    _knows_frames = _retried = False

    async def choose(self) -> str:
        self._broker_id, _ = await self._leader()
        self._link = f"producers-b{self._broker_id}"
        return f"{self._link}, responses of the leader of {self.cluster.topic}-{self._partition}"

    async def inject(self) -> None:
        self._before = await self._counted()
        self._batches = await self.cluster.counter(self._broker_id, BATCHES) or 0.0
        self._knows_frames = await self.cluster.links.stats(self._link) is not None
        if self._knows_frames:
            await self.damage.act_on_frames([self._link], _PRODUCE_RESPONSES)
        else:
            await self.damage.cut([self._link], "response", lossless=False)

    async def bites(self) -> Probe:
        seen: dict[str, object] = {"link": self._link}

        async def answered_into_the_void() -> bool:
            batches = await self.cluster.counter(self._broker_id, BATCHES)
            if batches is not None or self.cluster.is_own:
                seen["batches_while_cut"] = None if batches is None else int(batches - self._batches)
            if not self._knows_frames:
                return (batches or 0.0) > self._batches
            return await self._lost_so_far() > 0

        # a short time limit, since the whole fault must be over within a second
        return Probe(await until(answered_into_the_void, clock=self.clock, timeout_ms=300, interval_ms=20), seen)

    async def heal(self) -> None:
        """Remove the toxic, and count lost responses again: some may have come only after the probe."""
        self._lost = await self._lost_so_far() if self._knows_frames else None
        await super().heal()

    async def gone(self) -> Probe:
        async def came_again() -> bool:
            return await self._retries() > 0

        is_counted = self.cluster.is_own
        self._retried = not is_counted or await until(came_again, clock=self.clock, timeout_ms=4_000)
        clear = await self.damage.clear()
        seen: dict[str, object] = {"link_clear": clear}
        if self._lost is not None:
            seen["responses_lost"] = self._lost
        if is_counted:
            seen["retries"] = await self._retries()
        return Probe(clear, seen)

    def bit(self, during: Probe, after: Probe) -> bool:
        return self._retried and (during.effective if self._lost is None else self._lost > 0)

    async def _lost_so_far(self) -> int:
        return (await self.damage.frame_counts()).acted

    async def _retries(self) -> int:
        """How many batches were resent since the injection, by each broker's own count: a retry of the same leader is
        often both kinds. One that was killed meanwhile counts from 0."""
        now = await self._counted()
        return sum(max(0, *map(sub, counts, self._before[broker_id])) for broker_id, counts in now.items())

    async def _counted(self) -> dict[int, tuple[int, int]]:
        """Retries and duplicates of each broker."""
        return {
            broker_id: (await self._count(broker_id, RETRIES), await self._count(broker_id, DUPLICATES))
            for broker_id in self.cluster.broker_ids
        }

    async def _count(self, broker_id: int, name: str) -> int:
        return int(await self.cluster.counter(broker_id, name) or 0)
