"""Sums the outcomes of a sweep's cells over the seeds; makes its exit status and the object in ``sweep.json``. Pure.

Owns the rows of the matrix and the form of ``sweep.json``. Does not read outcomes (``outcome``) or render reports
(``report``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from chaos.exits import Exit
from chaos.sweeps.belonging import question
from chaos.sweeps.model import COUNTED, SEED, Cell, Sweep
from chaos.sweeps.outcome import CellOutcome, is_found, made_by, shows_what_is_claimed
from chaos.sweeps.reach import kept, together
from chaos.sweeps.sensitivity_figures import sensitivity_of

#: The version of ``sweep.json``. Sweeps before version 2 cannot be resumed: their ``run.json`` files lack fields.
SCHEMA = 2

#: Exit statuses from the best to the worst (docs/sweep.md).
_SEVERITY = (Exit.VALID, Exit.UNKNOWN, Exit.INVALID, Exit.HARNESS_FAILED)
#: A cell that could not be started counts as a failure of the harness.
_STATUS = {Exit.BAD_ARGUMENTS: Exit.HARNESS_FAILED}
#: The exit status that a cell without a verdict counts as.
_WITHOUT: Mapping[str, Exit] = {
    "failed": Exit.HARNESS_FAILED, "unjudged": Exit.UNKNOWN, "interrupted": Exit.UNKNOWN
}  # fmt: skip


#: The possible results of a run with a planted defect.
FOUND, MISSED, NEVER_FIRED = "found", "missed", "never fired"
#: The state that each of them counts as, consistent with its exit status.
_COMES_TO: Mapping[str, str] = {FOUND: "valid", MISSED: "invalid", NEVER_FIRED: "unknown"}
#: The states from the worst to the best.
STATES = ("failed", "invalid", "unknown", "interrupted", "unjudged", "valid")


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One setting of the matrix, summed over its seeds. ``verdicts`` are in the order of the seeds.

    ``shown`` is whether the setting shows what it claims, None if unknown. ``faults`` counts injected and effective
    ones.
    """

    labels: Mapping[str, str]
    claims: tuple[str, ...]
    verdicts: tuple[str, ...]
    #: The count of each effect. One that could not be counted for every judged seed is absent.
    found: Mapping[str, int]
    allowed: Mapping[str, str]
    forbidden: Mapping[str, int]
    shown: bool | None
    records_per_s: tuple[float, ...]
    rate_asked: int | None
    faults: tuple[int, int]
    judged: bool = False
    inapplicable: str = ""
    reasons: tuple[str, ...] = ()
    #: Whether some of its cells were selected and have not run.
    waiting: bool = False
    finds: tuple[str, ...] = ()
    #: How many judged runs have a planted defect, in how many of these it fired, and in how many of those a check that
    #: names it found it.
    planted: tuple[int, int, int] = (0, 0, 0)

    @property
    def verdict(self) -> str:
        """The worst verdict or status; ``-`` if nothing was run."""
        for verdict in ("failed", "invalid", "interrupted", "unjudged", "unknown", "valid"):
            if verdict in self.verdicts:
                return verdict
        return "-"

    @property
    def middle_records_per_s(self) -> float | None:
        """The median throughput over the seeds; None if it is not known for any."""
        return median(self.records_per_s) if self.records_per_s else None

    def to_json(self) -> dict[str, Any]:
        return {
            "labels": dict(self.labels),
            "claims": list(self.claims),
            "shown": self.shown,
            "verdict": self.verdict,
            "verdicts": list(self.verdicts),
            "found": dict(self.found),
            "allowed": dict(self.allowed),
            "forbidden": dict(self.forbidden),
            "records_per_s": self.middle_records_per_s,
            "rate_asked": self.rate_asked,
            "faults": {"injected": self.faults[0], "effective": self.faults[1]},
            "finds": list(self.finds),
            "planted": dict(zip(("runs", "fired", "found"), self.planted, strict=True)),
            "inapplicable": self.inapplicable,
            "reasons": list(self.reasons),
        }


def rows_of(sweep: Sweep, outcomes: Mapping[str, CellOutcome]) -> list[MatrixRow]:
    """A row for each setting with a selected cell, in the order of the cells. ``outcomes`` is by cell name."""
    settings: dict[tuple[str, ...], list[Cell]] = {}
    for cell in sweep.cells:
        if outcomes[cell.name].status == "not asked":
            continue
        # if the seed is the only dimension, each seed has its own row
        key = cell.setting if sweep.across != SEED else (*cell.setting, cell.name)
        settings.setdefault(key, []).append(cell)
    return [_row(cells, [outcomes[cell.name] for cell in cells], sweep.across) for cells in settings.values()]


def _row(cells: Sequence[Cell], outcomes: Sequence[CellOutcome], across: str) -> MatrixRow:
    first, judged = cells[0], [outcome for outcome in outcomes if outcome.status == "judged"]
    shown = [shows_what_is_claimed(cell, outcome) for cell, outcome in zip(cells, outcomes, strict=True)]
    said = [each for each in shown if each is not None]
    # it is enough if one seed shows a claimed effect; without claims, no seed may show any effect
    true = (any(said) if first.claims else all(said)) if said else None
    forbidden: dict[str, int] = {}
    for outcome in judged:
        for name, count in outcome.forbidden.items():
            forbidden[name] = forbidden.get(name, 0) + count
    return MatrixRow(
        labels={name: value for name, value in first.labels.items() if name != SEED or across == SEED},
        claims=first.claims,
        verdicts=tuple(verdict_of(outcome) for outcome in outcomes if verdict_of(outcome)),
        found={
            name: sum(each.found[name] for each in judged)
            for name in COUNTED
            if judged and all(name in each.found for each in judged)
        },
        judged=bool(judged),
        allowed=judged[0].allowed if judged else {},
        forbidden=forbidden,
        shown=true,
        records_per_s=tuple(each.records_per_s for each in judged if each.records_per_s is not None),
        rate_asked=first.asked.rate,
        faults=(sum(each.faults_injected for each in judged), sum(each.faults_effective for each in judged)),
        inapplicable=first.inapplicable,
        reasons=tuple(reason for each in outcomes for reason in each.reasons),
        waiting=any(each.status == "not run" for each in outcomes),
        finds=first.finds,
        planted=_planted(first, judged),
    )


def _planted(cell: Cell, judged: Sequence[CellOutcome]) -> tuple[int, int, int]:
    told = [is_found(cell, outcome) for outcome in judged] if cell.finds else []
    return len(told), sum(each is not None for each in told), sum(each is True for each in told)


def verdict_of(outcome: CellOutcome) -> str:
    """The verdict or the status of a cell that was run; empty for one that was not."""
    return outcome.verdict if outcome.status == "judged" else outcome.status if outcome.status in _WITHOUT else ""


def ending(cell: Cell, outcome: CellOutcome) -> str:
    """How a run ended, in a word: its verdict or, for a run with a planted defect, whether that was found."""
    if cell.finds and outcome.status == "judged":
        return {True: FOUND, False: MISSED, None: NEVER_FIRED}[is_found(cell, outcome)]
    return verdict_of(outcome)


def state_of(sweep: Sweep, outcomes: Mapping[str, CellOutcome]) -> str:
    """The state of the sweep, which is that of its worst cell; "" if nothing was run."""
    ended = {ending(cell, outcomes[cell.name]) for cell in sweep.cells}
    there = {_COMES_TO.get(each, each) for each in ended}
    return next((state for state in STATES if state in there), "")


def exit_status(outcomes: Sequence[CellOutcome], *, interrupted: bool = False) -> int:
    """The worst status: 255, then 1, then 2, then 0. An interrupted sweep is at best 2."""
    statuses = [Exit.UNKNOWN] if interrupted else [Exit.VALID]
    for outcome in outcomes:
        if outcome.status in _WITHOUT:
            # without a verdict, the exit status means nothing, since a crashing program may exit with any status
            statuses.append(_WITHOUT[outcome.status])
        elif outcome.exit_status is not None:
            statuses.append(_known(outcome.exit_status))
    return int(max(statuses, key=_SEVERITY.index))


def _known(status: int) -> Exit:
    """The status as ``Exit``. One that no command of gapless returns (that of a signal) is a harness failure."""
    try:
        known = Exit(status)
    except ValueError:
        return Exit.HARNESS_FAILED
    return _STATUS.get(known, known)


def counted(outcomes: Sequence[CellOutcome]) -> dict[str, int]:
    """The number of cells by verdict or status, including those that have not run."""
    names = [verdict_of(outcome) or outcome.status for outcome in outcomes]
    known = ("valid", "invalid", "unknown", "failed", "interrupted", "unjudged", "not run")
    return {name: names.count(name) for name in known if name in names}


def ran(rows: Sequence[MatrixRow]) -> list[MatrixRow]:
    """The rows with at least one cell that was run. ``left_out`` has the others."""
    return [row for row in rows if row.verdicts]


def left_out(rows: Sequence[MatrixRow], most: int | None = None) -> list[tuple[str, str]]:
    """The settings that were not run: a pair of texts for each reason, with the reason and the settings.

    Names at most ``most`` settings; None means all.
    """
    kinds: dict[str, list[str]] = {}
    for row in rows:
        why = f"does not apply ({row.inapplicable})" if row.inapplicable else "not run" if row.waiting else ""
        if why:
            kinds.setdefault(why, []).append(", ".join(row.labels.values()))
    return [(f"{why}: {_settings(len(named))}", _named(named, most)) for why, named in kinds.items()]


def _settings(count: int) -> str:
    return f"{count} setting{'' if count == 1 else 's'}"


def _named(names: Sequence[str], most: int | None) -> str:
    shown = names if most is None or len(names) <= most else names[:most]
    more = f"; and {len(names) - len(shown)} more, see sweep.md" if len(shown) < len(names) else ""
    return "; ".join(shown) + more


def planted_line(rows: Sequence[MatrixRow]) -> str:
    """A line on how many runs a planted defect fired in, and how many found it by name; "" if none was planted."""
    runs, fired, found = (sum(row.planted[index] for row in rows) for index in range(3))
    if not runs:
        return ""
    return f"planted defects fired in {fired} of {runs} runs, and were found by their names in {found} of these"


def claims_line(rows: Sequence[MatrixRow]) -> str:
    """A line on how many settings show what they claim; in a sweep without claims, the line on planted defects."""
    judged = [row for row in rows if row.shown is not None]
    if not any(row.claims for row in rows):
        return planted_line(rows)
    missing = [", ".join(f"{name} {value}" for name, value in row.labels.items()) for row in judged if not row.shown]
    left = f"; not so: {'; '.join(missing)}" if missing else ""
    return f"{len(judged) - len(missing)} of {len(judged)} settings show what Kafka's documentation says{left}"


def sweep_json(
    sweep: Sweep,
    wanted: Mapping[str, Any],
    outcomes: Mapping[str, CellOutcome],
    run_dirs: Mapping[str, str],
    **times: Any,
) -> dict[str, Any]:
    """The object in ``sweep.json``. ``run_dirs`` maps cell names to paths relative to the sweep's directory."""
    rows = rows_of(sweep, outcomes)
    return {
        "schema": SCHEMA,
        "sweep": sweep.name,
        "summary": sweep.summary,
        "wanted": dict(wanted),
        **times,
        "state": state_of(sweep, outcomes),
        "counts": counted(list(outcomes.values())),
        "commits": made_by(list(outcomes.values())),
        "claims": claims_line(rows),
        "notes": list(sweep.notes),
        "sensitivity": sensitivity_of(sweep, outcomes),
        "reached": together(sweep, outcomes).to_json(),
        "kept": [each.to_json() for each in kept(sweep, outcomes)],
        "rows": [row.to_json() for row in rows],
        "cells": list(_cells(sweep, outcomes, run_dirs)),
    }


def _cells(sweep: Sweep, outcomes: Mapping[str, CellOutcome], run_dirs: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for cell in sweep.cells:
        outcome = outcomes[cell.name]
        yield {
            "cell": cell.name,
            "labels": dict(cell.labels),
            "asks": question(cell),
            "claims": list(cell.claims),
            "shown": shows_what_is_claimed(cell, outcome),
            "finds": list(cell.finds),
            "is_found": is_found(cell, outcome),
            "run_dir": run_dirs.get(cell.name),
            "rate_asked": cell.asked.rate,
            "inapplicable": cell.inapplicable,
            **outcome.to_json(),
        }
