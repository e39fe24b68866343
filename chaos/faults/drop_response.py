"""``drop-response``: the broker carries out a request, but its response never arrives.

A ``timeout`` toxic downstream on a producers' link drops the responses; its removal within a second closes the
connections, and the client must resend what may have been stored already. It bit only if a Produce reached the log, its
response did not arrive, and a retry followed, which the broker detects by the fingerprint of the batch.
"""

from __future__ import annotations

from chaos.faults.base import Probe, until
from chaos.faults.link_fault import LinkFault

RETRIES = "gapless_produce_retries_total"
BATCHES = "gapless_produce_batches_total"


class DropResponse(LinkFault):
    """Bites when batches were appended and answers dropped while it lasted, and a known batch was resent after."""

    name = "drop-response"
    summary = "drop the responses to producers for under a second, then disconnect; the retries repeat what was done"
    duration_s = (0.4, 0.8)
    recovery_s = 2.5
    hits_client_links = True

    async def choose(self) -> str:
        self._broker_id, _ = await self._leader()
        self._link = f"producers-b{self._broker_id}"
        return f"{self._link}, responses of the leader of {self.cluster.topic}-{self._partition}"

    async def inject(self) -> None:
        self._retries = await self._retries_counted()
        self._batches = await self.cluster.counter(self._broker_id, BATCHES) or 0.0
        self._before = await self.cluster.links.stats(self._link)
        await self.damage.cut([self._link], "response", lossless=False)

    async def bites(self) -> Probe:
        seen: dict[str, object] = {"link": self._link}

        async def answered_into_the_void() -> bool:
            stats = await self.cluster.links.stats(self._link)
            batches = await self.cluster.counter(self._broker_id, BATCHES)
            seen["batches_while_cut"] = None if batches is None else int(batches - self._batches)
            dropped: int | None = None
            if stats is not None and self._before is not None:
                dropped = stats.dropped_response_bytes - self._before.dropped_response_bytes
            seen["dropped_bytes"] = dropped
            return (batches or 0.0) > self._batches and (dropped is None or dropped > 0)

        # Shorter than the fault itself: it must be over within a second.
        return Probe(await until(answered_into_the_void, clock=self.clock, timeout_ms=300, interval_ms=20), seen)

    async def gone(self) -> Probe:
        async def came_again() -> bool:
            return await self._retries_counted() > self._retries

        retried = await until(came_again, clock=self.clock, timeout_ms=4_000)
        clear = await self.damage.clear()
        retries = await self._retries_counted() - self._retries
        self._retried = retried
        return Probe(clear, {"link_clear": clear, "retries": int(retries)})

    def bit(self, during: Probe, after: Probe) -> bool:
        return during.effective and self._retried

    async def _retries_counted(self) -> float:
        total = 0.0
        for broker_id in self.cluster.broker_ids:
            total += await self.cluster.counter(broker_id, RETRIES) or 0.0
        return total
