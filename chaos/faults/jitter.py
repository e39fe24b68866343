"""``jitter``: clients' requests to a leader are late, each chunk differently (Toxiproxy's ``latency`` with jitter).

The order on each connection is kept; across connections, what was sent first may arrive last.
"""

from __future__ import annotations

from collections.abc import Mapping

from chaos.faults.accepted import integer
from chaos.faults.base import Probe
from chaos.faults.slowed_link import ENOUGH, SlowedLink


class Jitter(SlowedLink):
    """Bites only if the delays also differ, by at least half of the jitter."""

    name = "jitter"
    summary = "delay clients' requests to a leader by 100 to 250 ms, with jitter"
    accepts = (integer("latency_ms", 1, 5_000), integer("jitter_ms", 1, 5_000))
    pings = 8

    def draw(self) -> str:
        parameters = self.injection.parameters
        self._latency_ms = int(parameters.get("latency_ms") or self.random.randint(100, 250))
        jitter_ms = int(parameters.get("jitter_ms") or self.random.randint(self._latency_ms // 2, self._latency_ms))
        # with a jitter above the latency, some delays would be cut off at zero, which changes the mean
        self._jitter_ms = min(jitter_ms, self._latency_ms)
        return f"{self._latency_ms} ms later, give or take {self._jitter_ms}"

    @property
    def nominal_ms(self) -> float:
        return self._latency_ms

    def toxic(self) -> tuple[str, Mapping[str, int]]:
        return "latency", {"latency": self._latency_ms, "jitter": self._jitter_ms}

    async def _more(self, late_ms: list[float]) -> Probe:
        spread_ms = max(late_ms, default=0.0) - min(late_ms, default=0.0)
        return Probe(spread_ms >= ENOUGH * self._jitter_ms, {"spread_ms": round(spread_ms)})
