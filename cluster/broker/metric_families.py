"""Families of Prometheus metrics, made of numbers that were counted. Owns the prefix of their names and their units.

Does not own which metrics there are (``exposition``, ``coordinator_exposition``).
"""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from cluster.broker.request_metrics import BUCKETS, Times

#: The values of a family's labels, in their order.
Labels = tuple[str, ...]

_NS_PER_S = 1e9
#: Times below this bucket (16 microseconds) are not told apart.
_FIRST_BUCKET = 2


def seconds(elapsed_ns: int) -> float:
    return elapsed_ns / _NS_PER_S


def counter(name: str, text: str, values: Mapping[Labels, float], labels: tuple[str, ...] = ()) -> CounterMetricFamily:
    family = CounterMetricFamily(f"gapless_{name}", text, labels=labels)
    for each, value in values.items():
        family.add_metric(each, value)
    return family


def gauge(name: str, text: str, values: Mapping[Labels, float], labels: tuple[str, ...] = ()) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"gapless_{name}", text, labels=labels)
    for each, value in values.items():
        family.add_metric(each, value)
    return family


def histogram(
    name: str, text: str, values: Mapping[Labels, Times], labels: tuple[str, ...] = ()
) -> HistogramMetricFamily:
    family = HistogramMetricFamily(f"gapless_{name}", text, labels=labels)
    for each, times in values.items():
        counts = list(times.buckets)
        bounds = [(f"{4**index / 1e6:g}", sum(counts[: index + 1])) for index in range(_FIRST_BUCKET, BUCKETS - 1)]
        family.add_metric(each, [*bounds, ("+Inf", sum(counts))], seconds(times.sum_ns))
    return family
