"""The time line of a run as coordinates: lanes and charts on one axis. Pure; the template draws it.

Owns how lanes (``verifier.report.lanes``) and charts (``verifier.report.charts``) are put together. Coordinates are in
the units of one SVG whose width is ``WIDTH`` or ``NARROW``. Times are shown in seconds since the load began.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from verifier.evidence.how_many import how_many
from verifier.evidence.run_model import RunModel
from verifier.evidence.series import SeriesPoint
from verifier.report.charts import MAX_BINS, bin_width, charts
from verifier.report.drawing import CHART_GAP, LANE, LEFT, RIGHT, TOP, WIDTH, Axis, LaneBar, Timeline, time_ticks
from verifier.report.lanes import MOST_BARS, anomaly_lanes, fault_lanes, gap_lane, stacked
from verifier.surroundings.model import Moments
from verifier.witness.effectiveness import Injected

__all__ = ["LEFT", "MAX_BINS", "RIGHT", "WIDTH", "axis_of", "timeline"]

#: The most faults that are shaded through all charts.
MOST_BANDS = 200


def axis_of(injected: Sequence[Injected], series: Sequence[SeriesPoint], width: float = WIDTH) -> Axis | None:
    """The axis from the start of the load or the first fault to the end of both; None if there is neither."""
    starts = [point.time_ns - point.interval_ns for point in series] + [each.start_ns for each in injected]
    ends = [point.time_ns for point in series] + [each.end_ns or each.start_ns for each in injected]
    if not starts:
        return None
    return Axis(min(starts), max(max(ends), min(starts) + 1_000_000_000), width)


def timeline(
    run: RunModel,
    injected: Sequence[Injected],
    series: Sequence[SeriesPoint],
    availability: Mapping[str, Any],
    moments: Sequence[Moments] = (),
    width: float = WIDTH,
) -> Timeline:
    """Lays out the time line of a run."""
    axis = axis_of(injected, series, width)
    if axis is None:
        return Timeline(empty="The load left no series, and no fault was recorded.")
    faults = fault_lanes(injected, axis)
    lanes = stacked([*faults, *gap_lane(availability, axis), *anomaly_lanes(moments, axis)])
    drawn = charts(series, axis, TOP + LANE * len(lanes) + (CHART_GAP if lanes else 8))
    bottom = drawn[-1].y + drawn[-1].height if drawn else TOP + LANE * len(lanes)
    width_s = bin_width(axis)
    # curves have their own legend; the legend of the bars has only the kinds that occur
    kinds = {kind for lane in lanes for bar in lane.bars for kind in [bar.kind]}
    return Timeline(
        height=bottom + 26,
        bottom=bottom,
        width=axis.width,
        right=axis.right,
        ticks=time_ticks(axis),
        phases=tuple(_phases(run, axis)),
        lanes=lanes,
        charts=drawn,
        bands=tuple(bar for _, bars in faults for bar in bars if bar.kind == "bit")[:MOST_BANDS],
        kinds=tuple((kind, words) for kind, words in _KINDS.items() if kind in kinds),
        note=" ".join(_notes(injected, width_s)),
    )


def _notes(injected: Sequence[Injected], width_s: float) -> Iterator[str]:
    """Notes about simplifications of the drawing."""
    if width_s > 1:
        yield f"Each point covers {width_s:g} s."
    drawn = sum(min(count, MOST_BARS) for count in Counter(each.fault for each in injected).values())
    if drawn < len(injected):
        yield f"{how_many(len(injected) - drawn, 'more fault is', 'more faults are')} not drawn."


_KINDS = {
    "bit": "fault that bit",
    "recovering": "healed, not yet recovered",
    "missed": "did not bite",
    "skipped": "skipped",
    "gap": "longest time without an acknowledgement",
    "found": "anomaly, at its acknowledgement",
    "let": "anomaly that is allowed",
}


def _phases(run: RunModel, axis: Axis) -> list[LaneBar]:
    bars = []
    for index, phase in enumerate(run.phases):
        phase_end_ns = axis.end_ns if phase.end_ns is None else phase.end_ns
        if phase_end_ns <= axis.start_ns or phase.start_ns >= axis.end_ns:
            continue
        left, right = axis.x(phase.start_ns), axis.x(phase_end_ns)
        bars.append(LaneBar(left, round(right - left, 1), "even" if index % 2 else "odd", phase.name))
    return bars
