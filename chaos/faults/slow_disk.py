"""``slow-disk``: each sync to the disk of a partition's leader takes longer.

Nothing may fail: brokers wait for syncs off the event loop. Only rolling and checkpoints become slower.
"""

from __future__ import annotations

from typing import ClassVar

from chaos.faults.accepted import integer
from chaos.faults.base import Fault, Probe, Reach, until
from cluster.seams.units import ms_of_seconds

_DELAY_MS = 400
#: Long enough for a sync: rolled segments are synced within a second, and high watermarks are written every five.
_SYNC_MS = 8_000
_TIMED = "gapless_background_disk_seconds_sum"


class SlowDisk(Fault):
    """Bites when syncs took at least this long, according to the disk and to the broker's own measurement."""

    name = "slow-disk"
    summary = "make each sync to the disk of a partition's leader take 0.4 s longer"
    reach: ClassVar[Reach] = "machines"
    duration_s = (3.0, 5.0)
    recovery_s = 2.0
    #: A kill would end the fault, because a new process has a fast disk.
    hits = "traffic"
    accepts = (integer("delay_ms", 10, 5_000),)
    needs_fault_port = True

    _is_slow = True

    async def choose(self) -> str:
        self._broker_id, _ = await self._leader()
        self._delay_ms = int(self.injection.parameters.get("delay_ms", _DELAY_MS))
        return f"broker {self._broker_id}, leader of {self.cluster.topic}-{self._partition}, by {self._delay_ms} ms"

    async def inject(self) -> None:
        self._pid = self.cluster.process(self._broker_id).pid
        self._timed_s = await self._waited_s()
        state = await self.cluster.machine(self._broker_id).see()
        self._delayed_before = 0 if state is None else state.delayed_syncs
        await self.cluster.machine(self._broker_id).delay_syncs(self._delay_ms)

    async def _waited_s(self) -> float:
        """How long the broker has waited for its disk, by its own metrics."""
        return await self.cluster.counter(self._broker_id, _TIMED) or 0.0

    async def bites(self) -> Probe:
        machine = self.cluster.machine(self._broker_id)

        async def delayed() -> bool:
            state = await machine.see()
            waited_ms = ms_of_seconds(await self._waited_s() - self._timed_s)
            if state is None or waited_ms < self._delay_ms:
                return False
            # the counter may include syncs that an earlier fault delayed
            return state.delayed_syncs > self._delayed_before and state.last_sync_ms >= self._delay_ms

        both = await until(delayed, clock=self.clock, timeout_ms=_SYNC_MS, interval_ms=200)
        state = await machine.see()
        seen = {
            "broker": self._broker_id,
            "delayed_syncs": 0 if state is None else state.delayed_syncs - self._delayed_before,
            "longest_sync_ms": 0 if state is None else state.longest_sync_ms,
            "waited_for_disk_ms": round(ms_of_seconds(await self._waited_s() - self._timed_s)),
        }
        return Probe(both, seen)

    def bit(self, during: Probe, after: Probe) -> bool:
        """Also requires that the disk was still slow at the heal: another fault or a restart may have ended that."""
        return during.effective and self._is_slow

    async def heal(self) -> None:
        if await self._runs(self._broker_id):
            state = await self.cluster.machine(self._broker_id).see()
            self._is_slow = state is None or state.last_sync_ms >= self._delay_ms
            await self.cluster.machine(self._broker_id).delay_syncs(0)

    async def gone(self) -> Probe:
        machine = self.cluster.machine(self._broker_id)
        first = await machine.see()

        async def fast() -> bool:
            state = await machine.see()
            if state is None or first is None:
                return False
            # not the next sync, which may have begun before the heal
            return state.syncs > first.syncs + 1 and state.last_sync_ms < self._delay_ms

        synced = await until(fast, clock=self.clock, timeout_ms=_SYNC_MS, interval_ms=200)
        rejoined = await self._rejoined()
        state = await machine.see()
        well = state is not None and state.is_well
        last_ms = 0 if state is None else state.last_sync_ms
        return Probe(synced and well and rejoined, {"disk_well": well, "last_sync_ms": last_ms, "isr_full": rejoined})
