"""Reports requests to Locust: an event for each request, and the latencies of its records in bulk. Judges nothing.

An event costs microseconds, so there is one for each produce request or poll, but none for a record; its ``context``
has the number of ``records``. Locust's line ``KAFKA`` counts these events. The line ``RECORD`` with the same name
counts records: their latencies are kept for a second and then merged into its histogram at once. It is not part of
Locust's "Aggregated", which would count everything twice.
"""

from __future__ import annotations

from array import array
from typing import Any

from locust.stats import StatsEntry

from cluster.seams.clock import Clock
from cluster.seams.units import seconds_of_ms
from loadgen.recorder import CountedRequest
from loadgen.tally import histogram, milliseconds_of

MERGE_INTERVAL_NS = 1_000_000_000


class DeliveryError(Exception):
    """The error that Locust shows for records without an acknowledgement. The history has their outcomes."""


class LocustStatistics:
    """The requests of one Locust process."""

    def __init__(self, environment: Any, clock: Clock) -> None:
        self._environment = environment
        self._clock = clock
        self._merged_ns = clock.monotonic_ns()
        self._latencies_ns: dict[str, array[int]] = {}
        self._bytes: dict[str, int] = {}

    def count(self, request: CountedRequest) -> None:
        """Fire the event of one request, and keep the latencies of its records."""
        self._environment.events.request.fire(
            request_type="KAFKA",
            name=request.name,
            response_time=request.latency_ms,
            response_length=request.size_bytes,
            exception=None if request.error is None else DeliveryError(request.error),
            context={"records": request.records},
        )
        if request.latencies_ns:
            self._latencies_ns.setdefault(request.name, array("q")).extend(request.latencies_ns)
            self._bytes[request.name] = self._bytes.get(request.name, 0) + request.size_bytes

    def merge_if_due(self) -> None:
        """Merge the kept latencies once a second. To be called several times a second."""
        if self._clock.monotonic_ns() - self._merged_ns >= MERGE_INTERVAL_NS:
            self.merge()

    def merge(self) -> None:
        """Merge all kept latencies into Locust's statistics."""
        self._merged_ns = self._clock.monotonic_ns()
        now_s = seconds_of_ms(self._clock.wall_ms())
        latencies, self._latencies_ns = self._latencies_ns, {}
        sizes, self._bytes = self._bytes, {}
        statistics = self._environment.stats
        for name, of_name in latencies.items():
            milliseconds = milliseconds_of(of_name)
            entry = StatsEntry(statistics, name, "RECORD", use_response_times_cache=False)
            entry.num_requests = milliseconds.size
            entry.total_content_length = sizes[name]
            entry.total_response_time = float(milliseconds.sum())
            entry.min_response_time = float(milliseconds.min())
            entry.max_response_time = float(milliseconds.max())
            entry.last_request_timestamp = now_s
            entry.num_reqs_per_sec[int(now_s)] = milliseconds.size
            entry.response_times.update(histogram(milliseconds))
            statistics.get(name, "RECORD").extend(entry)
