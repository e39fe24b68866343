"""The charts of the time line: throughput, latency, and operations without an acknowledgement, on the same axis.

Owns their scales and bins. Does not own the axis (``verifier.report.drawing``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from verifier.evidence.series import SeriesPoint
from verifier.evidence.units import ns_of_seconds, seconds_of_ns
from verifier.report.drawing import CHART, CHART_GAP, LOW_CHART, Axis, Chart, Line, Tick, round_steps

#: The most points of a curve. A longer run has wider bins, and the chart says so.
MAX_BINS = 600


def charts(series: Sequence[SeriesPoint], axis: Axis, y: float) -> tuple[Chart, ...]:
    """All charts that the series has figures for, from ``y`` downwards."""
    if not series:
        return ()
    width_s = bin_width(axis)
    bins = _bins(series, axis.start_ns, width_s)
    middles = {number: axis.x(axis.start_ns + ns_of_seconds((number + 0.5) * width_s)) for number in bins}
    acked = {number: each.acked / width_s for number, each in bins.items()}
    read = {number: each.read / width_s for number, each in bins.items()}
    drawn = [
        _linear_chart(
            "records per second", y, CHART, middles, (("acknowledged", "acked", acked), ("read", "read", read))
        )
    ]
    p50 = {number: each.p50_ms for number, each in bins.items() if each.p50_ms is not None}
    p99 = {number: each.p99_ms for number, each in bins.items() if each.p99_ms is not None}
    if p99:
        latencies = (("p99, worst process", "p99", p99), ("p50", "p50", p50))
        title = "milliseconds from intended send to acknowledgement"
        drawn.append(_log_chart(title, drawn[-1].y + drawn[-1].height + CHART_GAP, middles, latencies))
    unknown = {number: each.unknown / width_s for number, each in bins.items()}
    failed = {number: each.failed / width_s for number, each in bins.items()}
    # an empty chart would only take space
    both = (("unknown outcome", "unknown", unknown), ("failed or never sent", "failed", failed))
    lines = tuple(line for line in both if any(line[2].values()))
    if lines:
        title = "operations without an acknowledgement, per second"
        top = drawn[-1].y + drawn[-1].height + CHART_GAP
        drawn.append(_linear_chart(title, top, LOW_CHART, middles, lines))
    return tuple(drawn)


def bin_width(axis: Axis) -> float:
    """The seconds that one point of a curve covers."""
    return max(1.0, math.ceil(axis.seconds(axis.end_ns) / MAX_BINS))


@dataclass(slots=True)
class _Bin:
    acked: int = 0
    read: int = 0
    unknown: int = 0
    failed: int = 0
    p50_weight: float = 0.0
    p50_sum: float = 0.0
    p99_ms: float | None = None

    @property
    def p50_ms(self) -> float | None:
        return self.p50_sum / self.p50_weight if self.p50_weight else None


def _bins(series: Sequence[SeriesPoint], start_ns: int, width_s: float) -> dict[int, _Bin]:
    """The bins, summed over all processes. Only producers have latencies: p50 is a weighted mean, p99 the worst."""
    last = max(int(seconds_of_ns(point.time_ns - 1 - start_ns) / width_s) for point in series)
    bins = {number: _Bin() for number in range(last + 1)}
    for point in series:
        each = bins[max(0, int(seconds_of_ns(point.time_ns - 1 - start_ns) / width_s))]
        each.acked += point.acked
        each.read += point.read
        each.unknown += point.unknown
        each.failed += point.failed
        if point.acked and point.latency_p50_ms is not None and point.latency_p99_ms is not None:
            each.p50_sum += point.acked * point.latency_p50_ms
            each.p50_weight += point.acked
            each.p99_ms = max(each.p99_ms or 0.0, point.latency_p99_ms)
    return bins


def _linear_chart(
    title: str,
    y: float,
    height: float,
    middles: Mapping[int, float],
    lines: Sequence[tuple[str, str, Mapping[int, float]]],
) -> Chart:
    top = max((value for _, _, values in lines for value in values.values()), default=0.0) or 1.0
    steps = round_steps(top, 4 if height > LOW_CHART else 2)
    top = max(top, steps[-1])

    def at(value: float) -> float:
        return round(y + height * (1 - value / top), 1)

    ticks = tuple(Tick(at(step), f"{step:,.0f}") for step in steps)
    drawn = tuple(
        Line(name, kind, _path(middles, values, at), _area(middles, values, at, y + height) if not index else "")
        for index, (name, kind, values) in enumerate(lines)
    )
    return Chart(title, y, height, ticks, drawn)


def _log_chart(
    title: str, y: float, middles: Mapping[int, float], lines: Sequence[tuple[str, str, Mapping[int, float]]]
) -> Chart:
    values = [max(value, 0.01) for _, _, each in lines for value in each.values()]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)

    def at(value: float) -> float:
        return round(y + CHART * (1 - (math.log10(max(value, 0.01)) - low) / (high - low)), 1)

    ticks = tuple(Tick(at(10.0**power), f"{10.0**power:,g}") for power in range(low, high + 1))
    drawn = tuple(Line(name, kind, _path(middles, each, at)) for name, kind, each in lines)
    return Chart(title, y, CHART, ticks, drawn)


def _path(middles: Mapping[int, float], values: Mapping[int, float], at: Callable[[float], float]) -> str:
    """A path that breaks where a bin has no value."""
    parts = []
    before: int | None = None
    for number in sorted(values):
        command = "L" if before == number - 1 else "M"
        parts.append(f"{command}{middles[number]},{at(values[number])}")
        if command == "M" and number + 1 not in values:
            parts.append("h0.1")  # a lone point would not be drawn
        before = number
    return " ".join(parts)


def _area(
    middles: Mapping[int, float], values: Mapping[int, float], at: Callable[[float], float], bottom: float
) -> str:
    """The closed path between a curve and ``bottom``; empty without values."""
    if not values:
        return ""
    numbers = sorted(values)
    inner = " ".join(f"L{middles[number]},{at(values[number])}" for number in numbers)
    return f"M{middles[numbers[0]]},{bottom} {inner} L{middles[numbers[-1]]},{bottom} Z"
