"""When the records of a producer are due, and which partition its stream writes to. Pure.

An open model: record ``k`` of a user is due by the clock alone, whatever became of the records before it. What cannot
be sent in time is sent late and keeps its intended time, so latency contains the waiting (no coordinated omission).
A load without a rate has no intended time but the moment at which there is room (``loadgen.users.streams``).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from loadgen.shapes import RateShape

NANOSECONDS = 1_000_000_000


def partition_of(stream: int, partitions: int) -> int:
    """The one partition of a stream."""
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
        # from a little below, so that no rounding steps over a record's time
        count = max(0, int(work * self.rate) - 1)
        while self.due_ns(count) <= now_ns:
            count += 1
        return count


def staggered_start_ns(now_ns: int, user: int, users: int, rate_per_user: float) -> int:
    """The start of user number ``user``: users of one rate are spread over one period, so they do not send as one."""
    period_ns = NANOSECONDS / rate_per_user
    return now_ns + int(period_ns * (user % max(1, users)) / max(1, users))
