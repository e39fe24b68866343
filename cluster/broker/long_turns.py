"""A broker whose loop is busy for long answers no one: such turns are counted, and logged with what took them.

Owns the log line, one in ten seconds, and the figures. Which API it was is read from the times of requests,
which are there anyway: nothing is done for a request that is quick. Does not own the measuring
(``cluster.seams.turns``).
"""

from __future__ import annotations

import logging

from cluster.broker.metrics import Counters
from cluster.broker.request_metrics import BUCKETS, ApiMetrics
from cluster.protocol.apis import ApiKey
from cluster.seams.pace import Pace
from cluster.seams.units import ms_of_ns

logger = logging.getLogger(__name__)

#: Handlers that took 65 ms or longer are counted from this bucket on.
_SLOW_BUCKET = 9
_LOGGED_NS = 10_000_000_000


class LongTurns:
    """For one broker. Turns before it is given ``counters`` are not noted."""

    def __init__(self) -> None:
        self.counters: Counters | None = None
        self._slow: dict[int, int] = {}
        self._pace = Pace(1, _LOGGED_NS)
        #: The longest turn since the start.
        self.longest_ns = 0

    def __repr__(self) -> str:
        return f"<LongTurns: the longest {self.longest_ns} ns>"

    def note(self, elapsed_ns: int) -> None:
        """A turn ended; this is how long it took."""
        counters = self.counters
        if counters is None:
            return
        counters.event_loop_long_turns += 1
        self.longest_ns = max(self.longest_ns, elapsed_ns)
        culprits = self._culprits(counters)
        left_out = self._pace.take(counters.now_ns())
        if left_out is None:
            return
        logger.warning(
            "a turn of the event loop took %.0f ms: %s%s",
            ms_of_ns(elapsed_ns),
            ", ".join(culprits) or "no single request, but many, or work of the broker's own, or a busy machine",
            f" ({left_out} more long turns before)" if left_out else "",
        )

    def _culprits(self, counters: Counters) -> list[str]:
        """The APIs of which a handler took long since the last look."""
        found = []
        for key, metrics in counters.api.apis.items():
            slow = _slow(metrics)
            if slow > self._slow.get(key, 0):
                self._slow[key] = slow
                found.append(ApiKey(key).name)
        return found


def _slow(metrics: ApiMetrics) -> int:
    return sum(sum(times.buckets[_SLOW_BUCKET:BUCKETS]) for times in (metrics.at_once, metrics.local))
