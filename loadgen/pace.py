"""When the records of a producer are due, and which partition its stream writes to. Pure.

This is an open model: only the clock decides when record ``k`` of a user is due, regardless of earlier records. A
record that cannot be sent in time is sent late and keeps its intended time, so that its latency includes the waiting
(no coordinated omission). In a load without a rate, the intended time is when there is room for the record
(``loadgen.users.streams``). Sends nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from loadgen.shapes import RateShape

NANOSECONDS = 1_000_000_000


def partition_of(stream: int, partitions: int) -> int:
    """The partition of a stream."""
    return stream % partitions


@dataclass(frozen=True, slots=True)
class OpenSchedule:
    """Records of one user, due from ``start_ns`` on; ``rate`` is per second and above 0, and ``shape`` changes it."""

    start_ns: int
    rate: float
    shape: RateShape = field(default_factory=RateShape)

    def due_ns(self, number: int) -> int:
        """When record ``number`` (from 0) is due."""
        if self.shape.is_constant:
            return self.start_ns + int(number * NANOSECONDS / self.rate)
        return self.start_ns + int(self.shape.seconds_of(number / self.rate) * NANOSECONDS)

    def due_count(self, now_ns: int) -> int:
        """How many records are due by ``now_ns``: the smallest ``n`` with ``due_ns(n) > now_ns``."""
        if now_ns < self.start_ns:
            return 0
        seconds = (now_ns - self.start_ns) / NANOSECONDS
        work = seconds if self.shape.is_constant else self.shape.work(seconds)
        # start a little lower, so that rounding cannot skip a record
        count = max(0, int(work * self.rate) - 1)
        while self.due_ns(count) <= now_ns:
            count += 1
        return count


def staggered_start_ns(now_ns: int, user: int, users: int, rate_per_user: float) -> int:
    """When user number ``user`` starts. Users with the same rate are spread over a period, to not send all at once."""
    period_ns = NANOSECONDS / rate_per_user
    return now_ns + int(period_ns * (user % max(1, users)) / max(1, users))
