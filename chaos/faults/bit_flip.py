"""``bit-flip``: one bit of a closed segment of the broker that leads a chosen partition is not what was written.

No start and no append examines what was synced, so the broker continues. Any reader of the batch finds that its
checksum is wrong: a consumer is not handed it, and no follower copies it. What an operator does heals it: the broker is
stopped, and the partition's directory removed; it fetches everything again (docs/log.md "Starting").
"""

from __future__ import annotations

import asyncio

from chaos.faults.base import Fault, PreconditionMissing, Probe
from chaos.faults.insides import FlippedBit
from chaos.faults.rolling_restart import STOP_MS


class FlipBit(Fault):
    """Bites when the file has a batch with a wrong checksum, and a reader of this broker finds the same."""

    name = "bit-flip"
    summary = "flip a bit in a closed segment of the broker that leads a partition; have it fetch the partition again"
    duration_s = (2.0, 3.0)
    recovery_s = 6.0
    #: What it loses in the end, others must have.
    hits = "everything"
    loses_data = True
    needs_sync = True
    least_brokers = 2
    least_replicas = 2
    needs_fault_port = True
    needs_closed_segments = True

    _flipped: FlippedBit | None = None

    async def choose(self) -> str:
        self._broker_id, _ = await self._leader()
        self._directory = f"{self.cluster.topic}-{self._partition}"
        if not await self.cluster.in_sync():
            raise PreconditionMissing("not every replica is in its ISR")
        if await self.cluster.insides(self._broker_id).segments(self._directory) < 2:
            raise PreconditionMissing(f"{self._directory} has no closed segment on broker {self._broker_id}")
        return f"broker {self._broker_id}, leader of {self._directory}"

    async def inject(self) -> None:
        seed = self.random.randrange(2**32)
        self._flipped = await self.cluster.insides(self._broker_id).flip_bit(self._directory, seed)

    async def bites(self) -> Probe:
        insides, flipped = self.cluster.insides(self._broker_id), self._flipped
        bad = await insides.bad_batches(self._directory)
        offset = -1 if flipped is None else flipped.offset
        found = flipped is not None and await insides.reads_damage(self.cluster.topic, self._partition, offset)
        seen = {"broker": self._broker_id, "offset": offset, "bad_batches": bad, "damage_found": found}
        return Probe(bad > 0 and found, seen)

    async def heal(self) -> None:
        """Whatever state the broker is in: a first try may have failed."""
        if self._flipped is None:
            return
        process = self.cluster.process(self._broker_id)
        if process.is_running() and not await self.cluster.stop(self._broker_id, STOP_MS):
            await asyncio.to_thread(process.kill)
        await self.cluster.insides(self._broker_id).remove_directory(self._directory)
        await self.cluster.restart(self._broker_id)

    async def gone(self) -> Probe:
        rejoined = await self._rejoined()
        bad = await self.cluster.insides(self._broker_id).bad_batches(self._directory)
        running = self.cluster.process(self._broker_id).is_running()
        return Probe(rejoined and running and bad == 0, {"running": running, "bad_batches": bad, "isr_full": rejoined})
