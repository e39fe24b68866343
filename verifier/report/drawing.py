"""The elements of the time line: bars, lanes, curves, and the axis that they share.

Owns these plain values and their coordinates, in the units of the SVG. The template draws them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from verifier.evidence.units import ns_of_seconds, seconds_of_ns

WIDTH = 1000
#: The width of the drawing for narrow pages, where text keeps its size and no one has to scroll.
NARROW = 400
LEFT, RIGHT = 132, 14
LANE = 22
CHART = 118
LOW_CHART = 58
CHART_GAP = 34
TOP = 24


@dataclass(frozen=True, slots=True)
class Axis:
    """Converts times of the run, in ns, into coordinates. A time outside of the axis is drawn at its edge."""

    start_ns: int
    end_ns: int
    width: float = WIDTH

    @property
    def right(self) -> float:
        """The coordinate of the last time."""
        return self.width - RIGHT

    def x(self, time_ns: float) -> float:
        """The coordinate of a time."""
        inside = min(max((time_ns - self.start_ns) / (self.end_ns - self.start_ns), 0.0), 1.0)
        return round(LEFT + inside * (self.right - LEFT), 1)

    def seconds(self, time_ns: float) -> float:
        """The seconds from the start of the axis to a time."""
        return seconds_of_ns(time_ns - self.start_ns)

    def bar(self, start_ns: float, end_ns: float, kind: str, title: str, *, least: float = 2.0) -> LaneBar:
        """A bar from one time to another, at least ``least`` wide."""
        left, right = self.x(start_ns), self.x(end_ns)
        width = max(round(right - left, 1), least)
        # a bar that is too short to be seen has the least width, even at the right edge
        return LaneBar(min(left, self.right - width), width, kind, title)


@dataclass(frozen=True, slots=True)
class LaneBar:
    """A fault, or another span, in its lane. ``text`` is written inside the bar, ``title`` is its tooltip."""

    x: float
    width: float
    kind: str
    title: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Lane:
    """One row of bars."""

    label: str
    y: float
    bars: tuple[LaneBar, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis."""

    position: float
    label: str


@dataclass(frozen=True, slots=True)
class Line:
    """One curve as an SVG path. The first curve of a chart also has the closed path of the area below it."""

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
    phases: tuple[LaneBar, ...] = ()
    lanes: tuple[Lane, ...] = ()
    charts: tuple[Chart, ...] = ()
    bands: tuple[LaneBar, ...] = ()
    kinds: tuple[tuple[str, str], ...] = ()
    note: str = ""
    empty: str = ""
    width: float = WIDTH
    left: float = LEFT
    right: float = WIDTH - RIGHT
    top: float = TOP
    bottom: float = field(default=0)


def round_steps(largest: float, wanted: int) -> list[float]:
    """About ``wanted`` round numbers from 0 to about ``largest``."""
    raw = max(largest, 1e-9) / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(each * power for each in (1, 2, 5, 10) if each * power >= raw)
    return [round(index * step, 9) for index in range(int(largest / step + 1e-9) + 1)]


def time_ticks(axis: Axis) -> tuple[Tick, ...]:
    """Ticks at round seconds along the axis."""
    steps = round_steps(axis.seconds(axis.end_ns), round(10 * axis.width / WIDTH))
    return tuple(Tick(axis.x(axis.start_ns + ns_of_seconds(at)), f"{at:g} s") for at in steps)
