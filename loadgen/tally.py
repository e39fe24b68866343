"""Counts what a load process does, per second and in total. Owns the numbers of a ``SeriesPoint``. Pure.

Latencies are kept one by one for the running interval and reduced to exact quantiles when it ends.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cluster.seams.units import NS_PER_MS
from verifier.evidence.series import SeriesPoint

Counted = Literal["acked", "read", "failed", "unknown", "errors", "fatal"]


def milliseconds_of(latencies_ns: array[int]) -> NDArray[np.float64]:
    """Many latencies at once."""
    return np.frombuffer(latencies_ns, dtype=np.int64) / NS_PER_MS


def histogram(milliseconds: NDArray[np.float64]) -> dict[int, int]:
    """Counts by latency, rounded as Locust rounds: two digits from 100 ms on, whole milliseconds below."""
    digits = np.select([milliseconds < 100, milliseconds < 1000, milliseconds < 10_000], [1.0, 10.0, 100.0], 1000.0)
    values, counts = np.unique((np.round(milliseconds / digits) * digits).astype(np.int64), return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


class Tally:
    """Counts and latencies of one process. ``start_ns`` is when its first interval begins."""

    def __init__(self, process: str, start_ns: int) -> None:
        self._process = process
        self._interval_start_ns = start_ns
        self._interval: Counter[Counted] = Counter()
        self._total: Counter[Counted] = Counter()
        self._latencies_ns = array("q")
        self._loop_lag_ms = 0.0
        self._last_acked_ns: dict[int, int] = {}

    def count(self, what: Counted, number: int = 1) -> None:
        self._interval[what] += number
        self._total[what] += number

    def total(self, what: Counted) -> int:
        return self._total[what]

    def latencies(self, latencies_ns: Iterable[int]) -> None:
        """One latency per record."""
        self._latencies_ns.extend(latencies_ns)

    def acknowledged(self, partition: int, now_ns: int) -> None:
        """Note when a record was acknowledged in this partition."""
        self._last_acked_ns[partition] = now_ns

    def loop_lag(self, lag_ms: float) -> None:
        """Note how late the process's ticker woke up. Each interval keeps the largest value."""
        self._loop_lag_ms = max(self._loop_lag_ms, lag_ms)

    def point(self, now_ns: int, backlog: int) -> SeriesPoint:
        """End the interval and begin a new one; returns its point. ``backlog``: records that are due but not sent."""
        p50 = p99 = worst = None
        if self._latencies_ns:
            values = milliseconds_of(self._latencies_ns)
            p50, p99, worst = (round(float(value), 3) for value in np.quantile(values, [0.5, 0.99, 1.0]))
        point = SeriesPoint(
            self._process,
            now_ns,
            now_ns - self._interval_start_ns,
            **{name: self._interval[name] for name in ("acked", "read", "failed", "unknown", "errors", "fatal")},
            backlog=backlog,
            latency_p50_ms=p50,
            latency_p99_ms=p99,
            latency_max_ms=worst,
            loop_lag_ms=round(self._loop_lag_ms, 3),
            total_acked=self._total["acked"],
            total_read=self._total["read"],
            total_failed=self._total["failed"],
            total_unknown=self._total["unknown"],
            total_errors=self._total["errors"],
            total_fatal=self._total["fatal"],
            last_acked_ns={str(partition): at_ns for partition, at_ns in self._last_acked_ns.items()},
        )
        self._interval_start_ns = now_ns
        self._interval.clear()
        self._latencies_ns = array("q")
        self._loop_lag_ms = 0.0
        return point

    def __repr__(self) -> str:
        return f"Tally({self._process}, {dict(self._total)})"
