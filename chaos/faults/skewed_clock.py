"""The base of faults on a broker's wall clock: makes it differ from those of the others, and corrects it.

The monotonic clock stays right, as on a real machine. Nothing may fail: only what depends on the wall clock (log append
times, retention, transaction timeouts) may happen early or late. Does not own by how much: each fault does.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from chaos.faults.base import Fault, Probe, Reach, until

#: A clock that is off by at most this much counts as right.
_RIGHT_MS = 250
_LOOK_MS = 100


class SkewedClock(Fault):
    """Bites when the broker's wall clock, read at its fault port, is off by at least half of what was requested."""

    reach: ClassVar[Reach] = "machines"
    duration_s = (3.0, 5.0)
    recovery_s = 1.5
    #: A kill would end the fault, because a new process has the right clock.
    hits = "traffic"
    needs_fault_port = True

    _at_the_end: int | None = None

    @abstractmethod
    def _asked(self) -> tuple[int, int]:
        """By how many ms the clock is moved forward, and by how many parts per million it runs too fast."""

    @property
    @abstractmethod
    def _off_ms(self) -> float:
        """By how many ms the clock is expected to be off."""

    async def choose(self) -> str:
        self._broker_id, _ = await self._leader()
        self._ahead_ms, self._drift_ppm = self._asked()
        return f"broker {self._broker_id}, leader of {self.cluster.topic}-{self._partition}"

    async def inject(self) -> None:
        await self.cluster.machine(self._broker_id).set_clock(self._ahead_ms, self._drift_ppm)

    async def _reading(self) -> int | None:
        state = await self.cluster.machine(self._broker_id).see()
        return None if state is None else state.ahead_ms

    async def bites(self) -> Probe:
        async def off() -> bool:
            reading = await self._reading()
            return reading is not None and self._is_off(reading)

        is_off = await until(off, clock=self.clock, timeout_ms=5_000, interval_ms=_LOOK_MS)
        return Probe(is_off, {"broker": self._broker_id, "clock_ahead_ms": await self._reading()})

    def _is_off(self, reading: int) -> bool:
        return abs(reading) >= max(abs(self._off_ms) / 2, 2 * _RIGHT_MS)

    async def heal(self) -> None:
        if await self._runs(self._broker_id):
            self._at_the_end = await self._reading()
            await self.cluster.machine(self._broker_id).set_clock(0, 0)

    async def gone(self) -> Probe:
        reading = await self._reading()
        rejoined = await self._rejoined()
        right = reading is not None and abs(reading) <= _RIGHT_MS
        seen = {"clock_ahead_ms": reading, "isr_full": rejoined}
        if self._at_the_end is not None:
            seen["clock_until_then_ms"] = self._at_the_end
        return Probe(right and rejoined, seen)

    def bit(self, during: Probe, after: Probe) -> bool:
        """Also requires that the clock was still off at the heal: another fault or a restart may have corrected it."""
        return during.effective and (self._at_the_end is None or self._is_off(self._at_the_end))
