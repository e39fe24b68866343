"""What compression leaves of a topic's records, from what it left of the batches before.

Owns the estimate (Kafka's CompressionRatioEstimator). Does not own what is estimated by it. Not thread-safe: the
accumulator's lock is held.
"""

from __future__ import annotations

INITIAL_RATIO = 1.0
#: A worse batch raises the estimate by this or more, at once to what was seen; a better one lowers it by less.
DETERIORATE_STEP = 0.05
IMPROVING_STEP = 0.005


class CompressionRatioEstimator:
    """By topic and codec, compressed bytes through uncompressed ones: careful, so that few batches are too large."""

    def __init__(self) -> None:
        self._ratios: dict[tuple[str, int], float] = {}

    def estimate(self, topic: str, codec: int) -> float:
        """What is to be expected; 1.0 of a topic that was not seen before."""
        return self._ratios.get((topic, codec), INITIAL_RATIO)

    def update(self, topic: str, codec: int, observed: float) -> float:
        """A batch had the ratio ``observed``. Returns the estimate that follows."""
        ratio = self.estimate(topic, codec)
        if observed > ratio:
            ratio = max(ratio + DETERIORATE_STEP, observed)
        elif observed < ratio:
            ratio = max(ratio - IMPROVING_STEP, observed)
        self._ratios[topic, codec] = ratio
        return ratio

    def reset(self, topic: str, codec: int, observed: float) -> None:
        """A batch was too large for the broker, at the ratio ``observed``: start again from there, or from 1.0."""
        self._ratios[topic, codec] = max(INITIAL_RATIO, observed)
