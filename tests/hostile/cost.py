"""What a case costs a broker beside its time: memory at its peak and afterward, descriptors, and bytes of its log.

Owns the thread that samples. Does not own what costs, nor the bounds of a single case (the tests).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.hostile.target import Target
from tests.support.attack import alongside

#: Between two looks at its memory.
SAMPLE_S = 0.02
#: Whatever is sent in one case, the broker does not log more.
MOST_LOG_BYTES = 64 << 10


class Cost:
    """Of one broker while something is sent to it. Memory is what it has more than before."""

    def __init__(self, broker: Target) -> None:
        self._broker = broker
        self._before_bytes = broker.memory_bytes()
        self._log_before_bytes = self._log_size()
        self.descriptors_before = self.descriptors = self.most_descriptors = broker.process.num_fds()
        self.peak_bytes = self.left_bytes = self.log_bytes = 0

    def __repr__(self) -> str:
        descriptors = f"{self.descriptors_before} to {self.descriptors} (at most {self.most_descriptors})"
        return (
            f"memory +{self.peak_bytes / 1e6:.1f} MB at its peak, {self.left_bytes / 1e6:+.1f} MB after; "
            f"descriptors {descriptors}; {self.log_bytes} bytes logged"
        )

    def _log_size(self) -> int:
        return (self._broker.directory / "process.log").stat().st_size

    def look(self) -> None:
        """As it is now."""
        self.left_bytes = self._broker.memory_bytes() - self._before_bytes
        self.peak_bytes = max(self.peak_bytes, self.left_bytes)
        self.descriptors = self._broker.process.num_fds()
        self.most_descriptors = max(self.most_descriptors, self.descriptors)
        self.log_bytes = self._log_size() - self._log_before_bytes

    def run(self, stop: threading.Event) -> None:
        while not stop.wait(SAMPLE_S):
            self.look()


@contextmanager
def costing(broker: Target) -> Iterator[Cost]:
    """Look at it every few milliseconds while the block runs, and once more after it."""
    cost = Cost(broker)
    try:
        with alongside(cost):
            yield cost
    finally:
        cost.look()
