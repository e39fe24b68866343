"""The plots of a sweep as coordinates: the matrix of what was found, and throughput. Pure; the template draws them.

Owns scales and positions, in the units of an SVG that is ``WIDTH`` wide. The scale for counts is logarithmic, so that a
single lost record is visible next to a thousand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from chaos.sweeps.model import COUNTED, UNKNOWN, Sweep
from chaos.sweeps.report.words import said, speed
from chaos.sweeps.summary import MatrixRow, ran

WIDTH = 1000
LABELS = 240
BOX_HEIGHT = 66
BAR = 10
#: The longest bar of the logarithmic scale stands for at least this many records.
LEAST_TOP = 1_000


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar. ``kind`` is its style; ``label`` is drawn after it."""

    x: float
    y: float
    width: float
    kind: str
    label: str


@dataclass(frozen=True, slots=True)
class Box:
    """One setting of the matrix. ``state`` is its style; ``mark`` says how it differs from the documentation, or ""."""

    x: float
    y: float
    width: float
    height: float
    state: str
    title: str
    words: str
    mark: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Label:
    """A text at a position."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Plot:
    """The matrix as the template draws it."""

    title: str
    height: float
    columns: tuple[Label, ...] = ()
    rows: tuple[Label, ...] = ()
    boxes: tuple[Box, ...] = ()
    width: float = field(default=WIDTH)


@dataclass(frozen=True, slots=True)
class Speed:
    """The throughput of one setting. ``width`` is in percent of the longest bar on the page."""

    name: str
    width: float
    label: str


@dataclass(frozen=True, slots=True)
class Speeds:
    """A list of bars. It is HTML, not a drawing, so that on a narrow page each name can be above its bar."""

    title: str
    bars: tuple[Speed, ...]


def matrix(sweep: Sweep, rows: Sequence[MatrixRow]) -> Plot:
    """The matrix: settings from top to bottom, the sweep's ``across`` from left to right, and counts of what was found.

    Omits rows and columns in which nothing was run.
    """
    found = ran(rows)
    lines, places = {_setting(sweep, row) for row in found}, {row.labels[sweep.across] for row in found}
    rows = [row for row in rows if _setting(sweep, row) in lines and row.labels[sweep.across] in places]
    columns = list(dict.fromkeys(row.labels[sweep.across] for row in rows))
    settings = list(dict.fromkeys(_setting(sweep, row) for row in rows))
    width = (WIDTH - LABELS) / max(1, len(columns))
    top = max((count for row in rows for count in row.found.values()), default=0)
    boxes = tuple(
        _box(row, columns.index(row.labels[sweep.across]), settings.index(_setting(sweep, row)), width, top)
        for row in rows
    )
    return Plot(
        "Found in each setting (records, logarithmic)",
        28 + BOX_HEIGHT * len(settings),
        columns=tuple(Label(LABELS + width * (n + 0.5), 16, name) for n, name in enumerate(columns)),
        rows=tuple(Label(LABELS - 10, 28 + BOX_HEIGHT * (n + 0.5) + 4, name) for n, name in enumerate(settings)),
        boxes=boxes,
    )


def _box(row: MatrixRow, column: int, line: int, width: float, top: int) -> Box:
    x, y = LABELS + width * column, 28.0 + BOX_HEIGHT * line
    bars = []
    for number, name in enumerate(COUNTED):
        count = row.found.get(name, 0)
        if count:
            kind = name.replace(" ", "-")
            length = _logarithmic(count, top) * max(10.0, width - 80)
            bars.append(Bar(round(x + 8, 1), y + 8 + number * (BAR + 3), round(length, 1), kind, f"{count:,}"))
    claim = "" if row.shown in (True, None) else "not seen" if row.claims else "not documented"
    words = "" if bars else _nothing(row)
    allowed = "; ".join(dict.fromkeys(row.allowed.values())) or "the settings allow nothing"
    documented = f"; documented: {said(row)}" if claim else ""
    title = f"{', '.join(row.labels.values())}: {row.verdict}; {allowed}{documented}"
    return Box(
        round(x + 2, 1), y + 2, round(width - 4, 1), BOX_HEIGHT - 4, state(row), title, words, claim, tuple(bars)
    )


def state(row: MatrixRow) -> str:
    """The style of a setting: its verdict, or ``allowed`` if it is valid and some effect was found."""
    if row.verdict == "valid":
        return "allowed" if any(count for name, count in row.found.items() if name != UNKNOWN) else "valid"
    return {"-": "absent", "failed": "invalid", "unjudged": "unknown"}.get(row.verdict, row.verdict)


def _nothing(row: MatrixRow) -> str:
    return {"valid": "nothing", "-": "does not apply" if row.inapplicable else "not run"}.get(row.verdict, row.verdict)


def _logarithmic(count: int, top: int) -> float:
    """The length of a bar: from just above 0 for one record to 1 for ``top`` (or ``LEAST_TOP``, if that is more)."""
    return math.log10(1 + count) / math.log10(1 + max(top, LEAST_TOP))


def throughputs(sweep: Sweep, rows: Sequence[MatrixRow]) -> list[Speeds]:
    """The throughput plots, all with the same scale: a bar for each setting.

    There is one plot for each value in the sweep's ``compared``, or a single one if that is empty. A plot without
    measurements is omitted.
    """
    measured = [row for row in rows if row.middle_records_per_s is not None]
    groups: list[tuple[str, str | None]] = [(f" ({sweep.across}: {value})", value) for value in sweep.compared]
    chosen = {
        title: [row for row in measured if value in (None, row.labels.get(sweep.across))]
        for title, value in groups or [("", None)]
    }
    top = max((row.middle_records_per_s or 0.0 for group in chosen.values() for row in group), default=0.0) or 1.0
    return [_speeds(sweep, f"Throughput{title}", group, top) for title, group in chosen.items() if group]


def _speeds(sweep: Sweep, title: str, rows: Sequence[MatrixRow], top: float) -> Speeds:
    return Speeds(
        title,
        tuple(
            Speed(
                _setting(sweep, row) if sweep.compared else ", ".join(row.labels.values()),
                round((row.middle_records_per_s or 0.0) / top * 100, 1),
                f"{speed(row)} records/s",
            )
            for row in rows
        ),
    )


def _setting(sweep: Sweep, row: MatrixRow) -> str:
    """The labels of a row without the dimension ``across``."""
    rest = {name: value for name, value in row.labels.items() if name != sweep.across}
    return ", ".join(f"{name} {value}" for name, value in rest.items()) or sweep.name
