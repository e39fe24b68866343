"""``starve-cpu``: a broker gets only a small share of CPU time, by being stopped and resumed several times a second.

This is like a machine shared with others: the broker is never gone for as long as its session, but everything that it
does takes several times as long. A competing process with a higher priority would need privileges, and would slow down
all brokers on the machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import ClassVar

from chaos.faults.accepted import integer
from chaos.faults.base import Fault, Probe, Reach, until
from chaos.faults.breakable import Process
from cluster.seams.units import seconds_of_ms

logger = logging.getLogger(__name__)

#: How long the broker is stopped at a time.
BURST_MS = 200
_PERCENT = (60, 85)
#: The probe waits for this many answers of the broker.
_ANSWERS = 8
_ANSWER_MS = 5_000
#: At least this share of the requested effect must be measured.
_ENOUGH = 0.5


class StarveCpu(Fault):
    """Bites when the broker was stopped for at least half of the requested share of the time, and one of its answers
    took at least half as long as a stop."""

    name = "starve-cpu"
    summary = "take most of the CPU time of a partition's leader by stopping it for moments, again and again"
    reach: ClassVar[Reach] = "processes"
    duration_s = (2.5, 4.0)
    recovery_s = 3.0
    accepts = (integer("percent", 50, 95),)

    _task: asyncio.Task[None] | None = None
    _process: Process | None = None

    async def choose(self) -> str:
        self._over = asyncio.Event()
        self._broker_id, _ = await self._leader()
        drawn = self.random.randint(*_PERCENT)
        self._percent = int(self.injection.parameters.get("percent", drawn))
        taken = f"{self._percent}% of its time taken"
        return f"broker {self._broker_id}, leader of {self.cluster.topic}-{self._partition}, {taken}"

    async def inject(self) -> None:
        self._process = self.cluster.process(self._broker_id)
        self._stopped_ms = 0.0
        self._began_ms = self.clock.monotonic_ms()
        self._task = asyncio.create_task(self._bursts(self._process))

    async def bites(self) -> Probe:
        worst_ms = 0

        async def answers() -> bool:
            return await self.cluster.answers(self._broker_id, timeout_ms=_ANSWER_MS)

        for _ in range(_ANSWERS):
            asked_ms = self.clock.monotonic_ms()
            await until(answers, clock=self.clock, timeout_ms=_ANSWER_MS, interval_ms=10)
            worst_ms = max(worst_ms, self.clock.monotonic_ms() - asked_ms)
            # a random pause, so that questions are not in step with the stops
            await asyncio.sleep(seconds_of_ms(self.random.uniform(10, BURST_MS)))
        taken = round(100 * self._stopped_ms / max(1, self.clock.monotonic_ms() - self._began_ms))
        seen = {"broker": self._broker_id, "taken_percent": taken, "longest_answer_ms": worst_ms}
        return Probe(taken >= _ENOUGH * self._percent and worst_ms >= _ENOUGH * BURST_MS, seen)

    async def heal(self) -> None:
        # not cancelled, because a thread that is about to stop the process would still do so
        self._over.set()
        if self._task is not None:
            await self._task
        # also if it is unknown whether it runs, because it could stay stopped
        if self._process is not None and not await self._has_ended(self._broker_id):
            await asyncio.to_thread(self._process.resume)

    async def gone(self) -> Probe:
        stopped = self.cluster.process(self._broker_id).is_suspended()
        answers = await self.cluster.answers(self._broker_id, timeout_ms=_ANSWER_MS)
        rejoined = await self._rejoined()
        over = self._task is None or self._task.done()
        return Probe(
            over and not stopped and answers and rejoined,
            {"stopped": stopped, "answers": answers, "isr_full": rejoined},
        )

    async def _bursts(self, process: Process) -> None:
        """Stop and resume the process until the fault is over or the process has ended."""
        runs_ms = BURST_MS * (100 - self._percent) / self._percent
        try:
            while await self._runs(self._broker_id) and not self._over.is_set():
                await asyncio.to_thread(process.suspend)
                begun_ms = self.clock.monotonic_ms()
                await self._pause(BURST_MS)
                if process.is_suspended():
                    self._stopped_ms += self.clock.monotonic_ms() - begun_ms
                await asyncio.to_thread(process.resume)
                await self._pause(runs_ms)
        except OSError as error:
            logger.debug("broker %d cannot be stopped: %r", self._broker_id, error)

    async def _pause(self, timeout_ms: float) -> None:
        """Wait for ``timeout_ms``, or until the fault is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds_of_ms(timeout_ms)):
                await self._over.wait()
