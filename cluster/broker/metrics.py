"""Metrics: plain integers counted on the hot path, shown to Prometheus when it asks.

Owns the counters, the detection of retried batches, and the HTTP port (prometheus_client's own thread, which only
reads). Does not own what is counted when.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cluster.protocol.batch import HEADER_BYTES, BatchHeader

#: How many appended batches are remembered to know a retry by, and how many bytes of their records.
_FINGERPRINTS = 16_384
_FINGERPRINT_BYTES = 64

#: (base timestamp, checksum of the first bytes of the records)
Fingerprint = tuple[int, int]

_COUNTERS = {
    "produce_batches": "Batches appended for clients",
    "produce_duplicates": "Batches answered as duplicates and not appended",
    "produce_retries": "Batches that arrived again, whatever became of them",
    "isr_shrinks": "Replicas' leaving the in-sync set, asked for by this leader",
    "isr_expands": "Replicas' joining the in-sync set, asked for by this leader",
    "leader_elections": "Times this broker became leader of a partition",
    "truncated_records": "Offsets cut from logs of this follower",
    "requests": "Requests received",
    "refused_frames": "Frames that were no request we serve: the connection was closed",
}


class Counters:
    """What has happened in this process. Each attribute of ``_COUNTERS`` is one counter."""

    __slots__ = (*_COUNTERS, "_fingerprints")

    def __init__(self) -> None:
        self.produce_batches = 0
        self.produce_duplicates = 0
        self.produce_retries = 0
        self.isr_shrinks = 0
        self.isr_expands = 0
        self.leader_elections = 0
        self.truncated_records = 0
        self.requests = 0
        self.refused_frames = 0
        self._fingerprints: dict[Fingerprint, None] = {}

    def __repr__(self) -> str:
        return f"<Counters {', '.join(f'{name}={getattr(self, name)}' for name in _COUNTERS)}>"

    def batch_arrived(self, header: BatchHeader, batch: memoryview) -> Fingerprint:
        """Count a batch that was appended before, and return what it is known by, for ``batch_appended``.

        It is known by its base timestamp and the head of its records, not by producer id and sequence: so a retry
        is seen without idempotence too, and whatever the sequence check makes of it.
        """
        fingerprint = (header.base_timestamp, zlib.crc32(batch[HEADER_BYTES : HEADER_BYTES + _FINGERPRINT_BYTES]))
        if fingerprint in self._fingerprints:
            self.produce_retries += 1
        return fingerprint

    def batch_appended(self, fingerprint: Fingerprint) -> None:
        self.produce_batches += 1
        known = self._fingerprints
        known[fingerprint] = None
        if len(known) > _FINGERPRINTS:
            del known[next(iter(known))]

    def isr_changed(self, before: frozenset[int], after: frozenset[int]) -> None:
        self.isr_shrinks += bool(before - after)
        self.isr_expands += bool(after - before)


class LoopLag:
    """How late the event loop runs a timer: the worst since it was last asked, in seconds."""

    INTERVAL_S = 0.1

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._worst_s = 0.0
        self._due = loop.time() + self.INTERVAL_S
        self._timer = loop.call_at(self._due, self._measure)

    def _measure(self) -> None:
        now = self._loop.time()
        self._worst_s = max(self._worst_s, now - self._due)
        self._due = now + self.INTERVAL_S
        self._timer = self._loop.call_at(self._due, self._measure)

    def take(self) -> float:
        """The worst lag since the previous call (what is lagging right now is not in it yet)."""
        worst_s, self._worst_s = self._worst_s, 0.0
        return worst_s

    def close(self) -> None:
        self._timer.cancel()


class BrokerCollector(Collector):
    """Turns counters and a few gauges into Prometheus' families; called in the HTTP server's thread."""

    def __init__(self, counters: Counters, gauges: Callable[[], dict[str, float]]) -> None:
        self._counters = counters
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        for name, text in _COUNTERS.items():
            family = CounterMetricFamily(f"gapless_{name}", text)
            family.add_metric([], getattr(self._counters, name))
            yield family
        for name, value in self._gauges().items():
            yield GaugeMetricFamily(f"gapless_{name}", name.replace("_", " "), value=value)


class MetricsServer:
    """The HTTP port of one broker, on 127.0.0.1."""

    def __init__(self, counters: Counters, gauges: Callable[[], dict[str, float]], port: int) -> None:
        registry = CollectorRegistry()
        registry.register(BrokerCollector(counters, gauges))
        self._server: Any
        self._server, self._thread = start_http_server(port, addr="127.0.0.1", registry=registry)
        self.port: int = self._server.server_port

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=1)
