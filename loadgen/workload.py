"""The workload's arithmetic: which partition a stream writes to, and when its records are due. Pure.

An open model: record ``k`` of a user is due at ``start + k / rate``, whatever became of the records before it. What
cannot be sent in time is sent late and keeps its intended time, so latency contains the waiting (no coordinated
omission).
"""

from __future__ import annotations

from dataclasses import dataclass

NANOSECONDS = 1_000_000_000


def partition_of(stream: int, partitions: int) -> int:
    """The one partition of a stream."""
    return stream % partitions


@dataclass(frozen=True, slots=True)
class OpenSchedule:
    """Records of one user, due at a constant rate from ``start_ns`` on; ``rate`` is per second and above 0."""

    start_ns: int
    rate: float

    def due_ns(self, number: int) -> int:
        """When record ``number`` (from 0) is due."""
        return self.start_ns + int(number * NANOSECONDS / self.rate)

    def due_count(self, now_ns: int) -> int:
        """How many records are due by ``now_ns``: the smallest ``n`` with ``due_ns(n) > now_ns``."""
        if now_ns < self.start_ns:
            return 0
        # from a little below, so that no rounding steps over a record's time
        count = max(0, int((now_ns - self.start_ns) * self.rate / NANOSECONDS) - 1)
        while self.due_ns(count) <= now_ns:
            count += 1
        return count


def staggered_start_ns(now_ns: int, user: int, users: int, rate_per_user: float) -> int:
    """The start of user number ``user``: users of one rate are spread over one period, so they do not send as one."""
    period_ns = NANOSECONDS / rate_per_user
    return now_ns + int(period_ns * (user % max(1, users)) / max(1, users))
