"""The time line of a run as coordinates: fault lanes, throughput, latency on one axis. Pure; the template draws it.

Owns scales, binning and ticks. Everything is in the units of one SVG whose width is ``WIDTH``; times are seconds since
the load began.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from verifier.effectiveness import Injected
from verifier.evidence.run_model import RunModel
from verifier.evidence.series import SeriesPoint

WIDTH = 1000
LEFT, RIGHT = 118, 14
LANE = 22
CHART = 118
CHART_GAP = 34
TOP = 24
#: More points than this are drawn as wider bins, and the chart says so.
MAX_BINS = 600


@dataclass(frozen=True, slots=True)
class Bar:
    """A fault, or another span, in its lane."""

    x: float
    width: float
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class Lane:
    """One row of bars."""

    label: str
    y: float
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis."""

    position: float
    label: str


@dataclass(frozen=True, slots=True)
class Line:
    """One curve: an SVG path, and for the first of a chart the closed one below it."""

    name: str
    kind: str
    path: str
    area: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart of the time line; ``y`` is its top."""

    title: str
    y: float
    height: float
    ticks: tuple[Tick, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Everything the template draws. ``empty`` says why there is nothing to draw."""

    height: float = 0
    ticks: tuple[Tick, ...] = ()
    phases: tuple[Bar, ...] = ()
    lanes: tuple[Lane, ...] = ()
    charts: tuple[Chart, ...] = ()
    bands: tuple[Bar, ...] = ()
    note: str = ""
    empty: str = ""
    width: float = WIDTH
    left: float = LEFT
    right: float = WIDTH - RIGHT
    top: float = TOP
    bottom: float = field(default=0)


def timeline(
    run: RunModel, injected: Sequence[Injected], series: Sequence[SeriesPoint], availability: Mapping[str, Any]
) -> Timeline:
    """Lay out the time line of a run."""
    span = _span(run, injected, series)
    if span is None:
        return Timeline(empty="The load left no series, and no fault was recorded.")
    start_ns, end_ns = span
    seconds = (end_ns - start_ns) / 1e9

    def x(time_ns: float) -> float:
        inside = min(max((time_ns - start_ns) / (end_ns - start_ns), 0.0), 1.0)
        return round(LEFT + inside * (WIDTH - LEFT - RIGHT), 1)

    lanes = _lanes(injected, availability, x, start_ns, end_ns)
    y = TOP + LANE * len(lanes) + (CHART_GAP if lanes else 8)
    width_s = _bin_width(seconds)
    charts = _charts(series, x, start_ns, width_s, y)
    bottom = charts[-1].y + CHART if charts else TOP + LANE * len(lanes)
    return Timeline(
        height=bottom + 26,
        bottom=bottom,
        ticks=tuple(Tick(x(start_ns + at * 1e9), f"{at:g} s") for at in _round_steps(seconds, 10)),
        phases=tuple(_phases(run, x, start_ns, end_ns)),
        lanes=lanes,
        charts=charts,
        bands=tuple(bar for lane in lanes for bar in lane.bars if bar.kind == "bit"),
        note=f"Each point covers {width_s:g} s." if width_s > 1 else "",
    )


def _span(run: RunModel, injected: Sequence[Injected], series: Sequence[SeriesPoint]) -> tuple[int, int] | None:
    """Beginning and end of what is drawn: the load and the faults."""
    starts = [point.time_ns - point.interval_ns for point in series] + [each.start_ns for each in injected]
    ends = [point.time_ns for point in series] + [each.end_ns or each.start_ns for each in injected]
    if not starts:
        return None
    return min(starts), max(max(ends), min(starts) + 1_000_000_000)


def _phases(run: RunModel, x: Callable[[float], float], start_ns: int, end_ns: int) -> list[Bar]:
    bars = []
    for index, phase in enumerate(run.phases):
        phase_end_ns = end_ns if phase.end_ns is None else phase.end_ns
        if phase_end_ns <= start_ns or phase.start_ns >= end_ns:
            continue
        left, right = x(phase.start_ns), x(phase_end_ns)
        bars.append(Bar(left, round(right - left, 1), "even" if index % 2 else "odd", phase.name))
    return bars


def _lanes(
    injected: Sequence[Injected],
    availability: Mapping[str, Any],
    x: Callable[[float], float],
    start_ns: int,
    end_ns: int,
) -> tuple[Lane, ...]:
    by_fault: dict[str, list[Bar]] = defaultdict(list)
    for each in injected:
        left, right = x(each.start_ns), x(each.end_ns or each.start_ns)
        at = (each.start_ns - start_ns) / 1e9
        length = "not healed" if each.end_ns is None else f"{(each.end_ns - each.start_ns) / 1e9:.1f} s"
        kind = "skipped" if each.skipped else "bit" if each.effective else "missed"
        words = {"skipped": "skipped", "bit": "bit", "missed": "did not bite"}[kind]
        title = f"{each.fault} on {each.target}, at {at:.1f} s for {length}: {words}"
        by_fault[each.fault].append(Bar(left, max(round(right - left, 1), 3.0), kind, title))
    rows = list(by_fault.items())
    worst = max(availability.get("partitions", {}).items(), key=lambda item: item[1]["longest_gap_ms"], default=None)
    if worst is not None:
        name, gap = worst
        if gap["end_ns"] > start_ns and gap["start_ns"] < end_ns:
            left, right = x(gap["start_ns"]), x(gap["end_ns"])
            title = f"{name}: {gap['longest_gap_ms']:.0f} ms without an acknowledgement, the longest of all"
            rows.append(("longest ack gap", [Bar(left, max(round(right - left, 1), 2.0), "gap", title)]))
    return tuple(Lane(label, TOP + LANE * index, tuple(bars)) for index, (label, bars) in enumerate(rows))


def _charts(
    series: Sequence[SeriesPoint], x: Callable[[float], float], start_ns: int, width_s: float, y: float
) -> tuple[Chart, ...]:
    if not series:
        return ()
    bins = _bins(series, start_ns, width_s)
    middles = {number: x(start_ns + (number + 0.5) * width_s * 1e9) for number in bins}
    acked = {number: each.acked / width_s for number, each in bins.items()}
    read = {number: each.read / width_s for number, each in bins.items()}
    throughput = _linear_chart(
        "records per second", y, middles, (("acknowledged", "acked", acked), ("read", "read", read))
    )
    p50 = {number: each.p50_ms for number, each in bins.items() if each.p50_ms is not None}
    p99 = {number: each.p99_ms for number, each in bins.items() if each.p99_ms is not None}
    if not p99:
        return (throughput,)
    latency = _log_chart(
        "milliseconds from intended send to acknowledgement", y + CHART + CHART_GAP, middles,
        (("p99, worst process", "p99", p99), ("p50", "p50", p50)),
    )  # fmt: skip
    return throughput, latency


@dataclass(slots=True)
class _Bin:
    acked: int = 0
    read: int = 0
    p50_weight: float = 0.0
    p50_sum: float = 0.0
    p99_ms: float | None = None

    @property
    def p50_ms(self) -> float | None:
        return self.p50_sum / self.p50_weight if self.p50_weight else None


def _bins(series: Sequence[SeriesPoint], start_ns: int, width_s: float) -> dict[int, _Bin]:
    """Sums over processes; the latencies are those of producers, which alone acknowledge."""
    last = max(int((point.time_ns - 1 - start_ns) / 1e9 / width_s) for point in series)
    bins = {number: _Bin() for number in range(last + 1)}
    for point in series:
        each = bins[max(0, int((point.time_ns - 1 - start_ns) / 1e9 / width_s))]
        each.acked += point.acked
        each.read += point.read
        if point.acked and point.latency_p50_ms is not None and point.latency_p99_ms is not None:
            each.p50_sum += point.acked * point.latency_p50_ms
            each.p50_weight += point.acked
            each.p99_ms = max(each.p99_ms or 0.0, point.latency_p99_ms)
    return bins


def _bin_width(seconds: float) -> float:
    return max(1.0, math.ceil(seconds / MAX_BINS))


def _linear_chart(
    title: str, y: float, middles: Mapping[int, float], lines: Sequence[tuple[str, str, Mapping[int, float]]]
) -> Chart:
    top = max((value for _, _, values in lines for value in values.values()), default=0.0) or 1.0
    steps = _round_steps(top, 4)
    top = max(top, steps[-1])

    def at(value: float) -> float:
        return round(y + CHART * (1 - value / top), 1)

    ticks = tuple(Tick(at(step), f"{step:,.0f}") for step in steps)
    drawn = tuple(
        Line(name, kind, _path(middles, values, at), _area(middles, values, at, y + CHART) if not index else "")
        for index, (name, kind, values) in enumerate(lines)
    )
    return Chart(title, y, CHART, ticks, drawn)


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
    if not values:
        return ""
    numbers = sorted(values)
    inner = " ".join(f"L{middles[number]},{at(values[number])}" for number in numbers)
    return f"M{middles[numbers[0]]},{bottom} {inner} L{middles[numbers[-1]]},{bottom} Z"


def _round_steps(largest: float, wanted: int) -> list[float]:
    """0 and round numbers up to about ``largest``, roughly ``wanted`` of them."""
    raw = max(largest, 1e-9) / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(each * power for each in (1, 2, 5, 10) if each * power >= raw)
    return [round(index * step, 9) for index in range(int(largest / step + 1e-9) + 1)]
