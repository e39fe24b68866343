"""Whether the event loop still turns, for the thread that keeps a broker's session.

Owns the pulse: a time that the loop notes every second, and the limit after which the loop counts as stuck. A session
that outlives its loop would let a broker that answers no one stay leader and controller: no other broker could take
over. A loop that is only busy keeps its session, so the limit is well above a long turn. Does not own the session
(``zookeeper``), nor the thread (``kazoo_connection``).
"""

from __future__ import annotations

import asyncio

from cluster.seams.clock import Clock
from cluster.seams.units import seconds_of_ms

BEAT_MS = 1_000
#: A loop is not stuck before it stood still for a session, and for this long at least: sessions may be short.
LEAST_STUCK_MS = 10_000


class LoopPulse:
    """Of the running loop, from ``start`` on. ``is_beating`` may be called from any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._beat_ms = clock.monotonic_ms()
        self._timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"LoopPulse({self._clock.monotonic_ms() - self._beat_ms} ms ago)"

    def start(self) -> None:
        self._beat_ms = self._clock.monotonic_ms()
        self._timer = asyncio.get_running_loop().call_later(seconds_of_ms(BEAT_MS), self.start)

    def stop(self) -> None:
        """There is no one whose session must end."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def is_beating(self, session_timeout_ms: int) -> bool:
        """Whether a session of that length is still to be kept. After ``stop`` it is."""
        stuck_ms = self._clock.monotonic_ms() - self._beat_ms
        return self._timer is None or stuck_ms < max(LEAST_STUCK_MS, session_timeout_ms)
