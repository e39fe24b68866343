"""Figures of a sweep: how many planted defects are found, how soon, and how many runs without one are accused. Pure.

Owns the arithmetic, and the form of the figures in ``sweep.json``. A defect that never fired was not exercised, but
also not missed: shares count only runs in which it fired. False alarms are counted over runs without a planted defect,
with and without faults. Does not own the wording (``report.sensitivity_words``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import TypedDict

from chaos.sweeps.confidence import CONFIDENCE, share_bounds
from chaos.sweeps.model import SEED, Cell, Sweep
from chaos.sweeps.outcome import CellOutcome, Status, is_found, made_by

#: The statuses of selected cells without a verdict.
WITHOUT_VERDICT: tuple[Status, ...] = ("failed", "interrupted", "unjudged", "not run")


class Count(TypedDict):
    """Something happened in ``happened`` of ``of`` runs; ``least`` and ``most`` are the bounds of the true share."""

    happened: int
    of: int
    least: float
    most: float


class DefectFigures(TypedDict):
    """One defect under one exercise, all seeds together.

    ``exercised``: in how many runs it fired. ``found``: in how many of these the verdict was invalid. ``named``: in how
    many a check found it that names it. ``anomalies`` counts what these checks found. ``records`` and ``seconds`` are
    the medians of when the first evidence appeared, None if no operation shows any.
    """

    defect: str
    exercise: str
    exercised: Count
    found: Count
    named: Count
    anomalies: dict[str, int]
    records: float | None
    seconds: float | None


class AlarmFigures(TypedDict):
    """The runs of one exercise without a planted defect: how many of those with a verdict were accused (``alarms``).

    ``judged`` counts valid and invalid runs. Unknown runs are counted separately.
    """

    exercise: str
    has_faults: bool
    alarms: int
    judged: int
    unknown: int


class Sensitivity(TypedDict):
    """The figures of a whole sweep. ``confidence`` applies to every bound.

    ``without_verdict`` counts selected cells without a verdict, by status (``failed``, ``not run``, ...). No other
    figure counts them. ``commits`` is a line if the runs were made by different commits, else "". ``accused_unfired``
    counts invalid runs whose planted defect never fired: neither a defect found nor a false alarm. ``alarms`` counts
    all runs without a planted defect, ``healthy_alarms`` those without faults, ``fault_alarms`` those with faults.
    """

    confidence: float
    without_verdict: dict[str, int]
    commits: str
    accused_unfired: int
    exercised: Count
    found: Count
    named: Count
    healthy_alarms: Count
    fault_alarms: Count
    alarms: Count
    defects: list[DefectFigures]
    controls: list[AlarmFigures]


def sensitivity_of(sweep: Sweep, outcomes: Mapping[str, CellOutcome]) -> Sensitivity | None:
    """The figures of a sweep that plants defects to be found; None for other sweeps, or before anything was judged."""
    if not any(cell.finds for cell in sweep.cells):
        return None
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in sweep.cells:
        if outcomes[cell.name].status == "judged":
            groups.setdefault(cell.setting, []).append(cell)
    defects = [_defect(cells, outcomes) for cells in groups.values() if cells[0].finds]
    controls = [_controls(cells, outcomes) for cells in groups.values() if not cells[0].asked.defects]
    if not defects and not controls:
        return None
    return Sensitivity(
        confidence=CONFIDENCE,
        without_verdict=_without_verdict(outcomes[cell.name] for cell in sweep.cells),
        commits=made_by([outcomes[cell.name] for cell in sweep.cells]),
        accused_unfired=sum(_is_accused_unfired(cell, outcomes[cell.name]) for cell in sweep.cells),
        exercised=_together(each["exercised"] for each in defects),
        found=_together(each["found"] for each in defects),
        named=_together(each["named"] for each in defects),
        healthy_alarms=_alarms(each for each in controls if not each["has_faults"]),
        fault_alarms=_alarms(each for each in controls if each["has_faults"]),
        alarms=_alarms(controls),
        defects=defects,
        controls=controls,
    )


def count_of(happened: int, of: int) -> Count:
    """The count, with the bounds of its share."""
    least, most = share_bounds(happened, of)
    return Count(happened=happened, of=of, least=round(least, 6), most=round(most, 6))


def _defect(cells: Sequence[Cell], outcomes: Mapping[str, CellOutcome]) -> DefectFigures:
    first, own = cells[0], [outcomes[cell.name] for cell in cells]
    fired = [each for each in own if each.fired]
    named = sum(is_found(cell, outcomes[cell.name]) is True for cell in cells)
    anomalies = {name: sum(each.forbidden.get(name, 0) for each in fired) for name in first.finds}
    records = [each.evidence_records for each in fired if each.evidence_records is not None]
    seconds = [each.evidence_s for each in fired if each.evidence_s is not None]
    return DefectFigures(
        defect=first.labels["defect"],
        exercise=_exercise(first),
        exercised=count_of(len(fired), len(own)),
        found=count_of(sum(each.verdict == "invalid" for each in fired), len(fired)),
        named=count_of(named, len(fired)),
        anomalies={name: count for name, count in anomalies.items() if count},
        records=median(records) if records else None,
        seconds=median(seconds) if seconds else None,
    )


def _controls(cells: Sequence[Cell], outcomes: Mapping[str, CellOutcome]) -> AlarmFigures:
    verdicts = Counter(outcomes[cell.name].verdict for cell in cells)
    return AlarmFigures(
        exercise=_exercise(cells[0]),
        has_faults=cells[0].schedule is not None,
        alarms=verdicts["invalid"],
        judged=verdicts["valid"] + verdicts["invalid"],
        unknown=verdicts["unknown"],
    )


def _is_accused_unfired(cell: Cell, outcome: CellOutcome) -> bool:
    return bool(cell.finds) and outcome.status == "judged" and not outcome.fired and outcome.verdict == "invalid"


def _without_verdict(outcomes: Iterable[CellOutcome]) -> dict[str, int]:
    statuses = Counter(each.status for each in outcomes)
    return {name: statuses[name] for name in WITHOUT_VERDICT if statuses[name]}


def _exercise(cell: Cell) -> str:
    return ", ".join(value for name, value in cell.labels.items() if name not in (SEED, "defect"))


def _together(counts: Iterable[Count]) -> Count:
    known = [*counts]
    return count_of(sum(each["happened"] for each in known), sum(each["of"] for each in known))


def _alarms(controls: Iterable[AlarmFigures]) -> Count:
    known = [*controls]
    return count_of(sum(each["alarms"] for each in known), sum(each["judged"] for each in known))
