"""``rolling-restart``: a controlled shutdown of each broker in turn, waiting for the full ISR in between.

What an operator does for an upgrade. It must cost nothing, since leadership moves before the broker stops.
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from chaos.faults.base import Fault, Probe, Reach, until

#: How long a controlled shutdown may take before it is no longer one.
STOP_MS = 15_000
_MOVED_MS = 3_000


class RollingRestart(Fault):
    """Bites when every broker stopped cleanly: leadership had moved, and the marker of a clean stop was there."""

    name = "rolling-restart"
    summary = "shut down each broker cleanly and restart it, one after the other"
    reach: ClassVar[Reach] = "clean-stop"
    #: Long enough for three brokers to stop, start and rejoin every ISR, one after the other.
    duration_s = (10.0, 12.0)
    recovery_s = 4.0
    least_replicas = 2
    hits = "everything"
    needs_sync = True

    async def choose(self) -> str:
        await self._all_run()
        await self._full_isrs()
        self._steps: list[dict[str, Any]] = []
        self._stopped: set[int] = set()
        return f"brokers {', '.join(map(str, self.cluster.broker_ids))}, one after the other"

    async def inject(self) -> None:
        for broker_id in self.cluster.broker_ids:
            self._steps.append(await self._roll(broker_id))

    async def bites(self) -> Probe:
        rolled = len(self._steps) == len(self.cluster.broker_ids)
        clean = all(step["in_time"] and step["clean"] and step["leaders_moved"] for step in self._steps)
        led = sum(step["led"] for step in self._steps)
        return Probe(rolled and clean and led > 0, {"steps": self._steps})

    async def heal(self) -> None:
        for broker_id in self._stopped:
            if not await self._runs(broker_id):
                await self.cluster.restart(broker_id)

    async def gone(self) -> Probe:
        running = await self._running() == list(self.cluster.broker_ids)
        rejoined = await self._rejoined()
        return Probe(running and rejoined, {"running": running, "isr_full": rejoined})

    async def _roll(self, broker_id: int) -> dict[str, Any]:
        """Stop one broker cleanly, restart it, and wait until it is back in every ISR; returns what was observed."""
        led = [index for index in range(self.cluster.partitions) if await self._led_by(index, broker_id)]
        self._stopped.add(broker_id)
        pid = self.cluster.process(broker_id).pid
        in_time = await self.cluster.stop(broker_id, STOP_MS)
        if not in_time:
            await asyncio.to_thread(self.cluster.process(broker_id).kill)
        clean = self.cluster.stopped_cleanly(broker_id)

        async def moved() -> bool:
            return not any([await self._led_by(index, broker_id) for index in led])

        leaders_moved = await until(moved, clock=self.clock, timeout_ms=_MOVED_MS)
        await self.cluster.restart(broker_id)
        return {
            "broker": broker_id,
            "pid": pid,
            "led": len(led),
            "in_time": in_time,
            "clean": clean,
            "leaders_moved": leaders_moved,
            "isr_full": await self._rejoined(),
        }

    async def _led_by(self, partition: int, broker_id: int) -> bool:
        found = await self.cluster.leader(partition)
        return found is not None and found[0] == broker_id
