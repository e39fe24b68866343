"""``bit-flip``: one bit in a closed segment of a partition's leader differs from what was written.

Neither a start nor an append examines what was synced, so the broker continues. Every reader of the batch sees that its
checksum is wrong: consumers do not return it, and followers do not copy it. It is healed as an operator would do it:
stop the broker, remove the partition's directory, and let it fetch everything again (docs/log.md "Starting").
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from chaos.faults.base import Fault, PreconditionMissing, Probe, Reach
from chaos.faults.machine import FlippedBit
from chaos.faults.rolling_restart import STOP_MS


class BitFlip(Fault):
    """Bites when the file has a batch with a wrong checksum, and a reader of this broker detects it."""

    name = "bit-flip"
    summary = "flip a bit in a closed segment of a partition's leader; have it fetch the partition again"
    reach: ClassVar[Reach] = "machines"
    duration_s = (2.0, 3.0)
    recovery_s = 6.0
    #: Other replicas must have the data that it removes in the end.
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
        await self._full_isrs()
        if await self.cluster.machine(self._broker_id).segments(self._directory) < 2:
            raise PreconditionMissing(f"{self._directory} has no closed segment on broker {self._broker_id}")
        return f"broker {self._broker_id}, leader of {self._directory}"

    async def inject(self) -> None:
        seed = self.random.randrange(2**32)
        self._flipped = await self.cluster.machine(self._broker_id).flip_bit(self._directory, seed)

    async def bites(self) -> Probe:
        machine, flipped = self.cluster.machine(self._broker_id), self._flipped
        bad = await machine.bad_batches(self._directory)
        offset = -1 if flipped is None else flipped.offset
        found = flipped is not None and await machine.reads_damage(self.cluster.topic, self._partition, offset)
        seen = {"broker": self._broker_id, "offset": offset, "bad_batches": bad, "damage_found": found}
        return Probe(bad > 0 and found, seen)

    async def heal(self) -> None:
        """Stop the broker, remove the partition, and restart. Works in any state, since an attempt may have failed."""
        if self._flipped is None:
            return
        process = self.cluster.process(self._broker_id)
        if await self._runs(self._broker_id) and not await self.cluster.stop(self._broker_id, STOP_MS):
            await asyncio.to_thread(process.kill)
        await self.cluster.machine(self._broker_id).remove_directory(self._directory)
        await self.cluster.restart(self._broker_id)

    async def gone(self) -> Probe:
        rejoined = await self._rejoined()
        bad = await self.cluster.machine(self._broker_id).bad_batches(self._directory)
        running = await self._runs(self._broker_id)
        return Probe(rejoined and running and bad == 0, {"running": running, "bad_batches": bad, "isr_full": rejoined})
