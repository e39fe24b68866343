"""stall: with a probability, holds a chunk for a random time; later chunks wait. Not in Toxiproxy.

Models packet loss under TCP: a lost packet is resent after a timeout, and until then no later data is delivered. The
``latency`` toxic cannot do this, because toxicity is drawn once per connection, not per chunk.
"""

from __future__ import annotations

from chaos.proxy.toxics.base import Attributes, ToxicType
from chaos.proxy.toxics.latency import DelayStage

PERMILLE = 1000


class StallStage(DelayStage):
    _probability: float
    _min_ms: int
    _max_ms: int

    def configure(self, attributes: Attributes, now: float) -> None:
        super().configure(attributes, now)
        self._probability = attributes["probability_permille"] / PERMILLE
        self._min_ms = attributes["min_ms"]
        self._max_ms = attributes["max_ms"]

    def delay_ms(self) -> float:
        if self.random.random() >= self._probability:
            return 0.0
        return self.random.uniform(self._min_ms, self._max_ms)


def _validate(attributes: Attributes) -> str | None:
    if not 0 <= attributes["probability_permille"] <= PERMILLE:
        return "probability_permille was invalid, must be between 0 and 1000"
    if not 0 <= attributes["min_ms"] <= attributes["max_ms"]:
        return "min_ms and max_ms were invalid, must be 0 <= min_ms <= max_ms"
    return None


STALL = ToxicType("stall", "StallToxic", ("probability_permille", "min_ms", "max_ms"), StallStage, validate=_validate)
