"""The runs from which ``docs/sensitivity.md`` is made: reads them from ``sweep.json`` files, and keeps them in a file.

Owns that file (``docs/sensitivity.json``: like ``sweep.json``, but with one line per run, and only the fields that a
figure or a reader needs), which run of a cell counts, and the rejection of contradictory entries. Does not own the
figures (``sensitivity_figures``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from chaos.exits import VERDICTS
from chaos.sweeps.belonging import question
from chaos.sweeps.model import SEED, Cell
from chaos.sweeps.outcome import CellOutcome
from chaos.sweeps.sensitivity import NAME
from chaos.sweeps.sensitivity_figures import WITHOUT_VERDICT
from loadgen.settings import CONFLUENT
from verifier.evidence.run_directory import read_json, write_text_atomic

#: Options that change the runs of a sweep but not the names of its cells, with the only values that are accepted.
_USUAL: Mapping[str, object] = {"time_limit_s": None, "rate": None, "client": CONFLUENT}
#: The suffix of a commit with uncommitted changes, which does not identify the sources.
_CHANGED = "-dirty"


class MeasuredRun(NamedTuple):
    """The run of one cell. ``asks`` is the digest of the cell's settings (``question``), "" if the file has none."""

    seed: int
    outcome: CellOutcome
    asks: str = ""


def new_runs(paths: Iterable[Path]) -> dict[str, MeasuredRun]:
    """The selected cells of these ``sweep.json`` files, by name.

    Raises ``OSError``. Raises ``ValueError`` if a file is not from this sweep, or if two files have a run of the same
    cell.
    """
    runs: dict[str, MeasuredRun] = {}
    for path in paths:
        for name, run in kept_runs(path).items():
            if run.outcome.status == "not run" and name in runs:
                continue
            if name in runs and runs[name].outcome.status != "not run":
                raise ValueError(f"{path} has the cell {name}, and another file has it too; count each run once")
            runs[name] = run
    return runs


def kept_runs(path: Path) -> dict[str, MeasuredRun]:
    """The selected cells of one file, by name. Raises ``OSError`` or ``ValueError``."""
    told = read_json(path)
    if told.get("sweep") != NAME:
        raise ValueError(f"{path} is not from 'gapless sweep {NAME}'; use one that is")
    wanted = told.get("wanted") or {}
    for option, usual in _USUAL.items():
        if wanted.get(option, usual) != usual:
            raise ValueError(f"{path}: a cell of it was asked something else ({option} {wanted[option]})")
    runs: dict[str, MeasuredRun] = {}
    for cell in told["cells"]:
        if cell["status"] == "not asked":
            continue
        name, outcome = str(cell["cell"]), CellOutcome.from_json(cell)
        if name in runs:
            raise ValueError(f"{path} has the cell {name} twice; count each run once")
        if (wrong := _contradiction(outcome)) is not None:
            raise ValueError(f"{path}: the cell {name} {wrong}; restore the file")
        runs[name] = MeasuredRun(int(cell["labels"][SEED]), outcome, str(cell.get("asks", "")))
    return runs


def _contradiction(outcome: CellOutcome) -> str | None:
    """Why this outcome cannot be that of a run, in words; None if it can."""
    if outcome.status != "judged":
        return None if outcome.status in WITHOUT_VERDICT else f"has the status {outcome.status!r:.20}"
    if outcome.verdict not in VERDICTS:
        return f"has the verdict {outcome.verdict!r:.20}"
    if (outcome.verdict == "invalid") != any(outcome.forbidden.values()):
        return f"is {outcome.verdict}, and has the forbidden anomalies {json.dumps(dict(outcome.forbidden)):.80}"
    return None


def with_new(kept: Mapping[str, MeasuredRun], new: Mapping[str, MeasuredRun]) -> dict[str, MeasuredRun]:
    """The kept runs together with the new ones that have begun; of two runs of a cell, the one that counts.

    Of two runs by the same commit, the first counts: otherwise someone could repeat a run until they like the result. A
    new run replaces one that has no verdict, an unknown verdict, or another commit.
    """
    begun = _begun(new)
    skipped = set(skipped_runs(kept, new))
    return {**kept, **{name: run for name, run in begun.items() if name not in skipped}}


def skipped_runs(kept: Mapping[str, MeasuredRun], new: Mapping[str, MeasuredRun]) -> list[str]:
    """The names of the cells whose new run does not count, because the kept one does."""
    return [name for name, run in _begun(new).items() if name in kept and _stays(kept[name].outcome, run.outcome)]


def _begun(new: Mapping[str, MeasuredRun]) -> dict[str, MeasuredRun]:
    return {name: run for name, run in new.items() if run.outcome.status != "not run"}


def _stays(before: CellOutcome, now: CellOutcome) -> bool:
    if before.status != "judged":
        return False
    if now.status != "judged":
        return True
    is_known = before.verdict != "unknown" and before.commit and not before.commit.endswith(_CHANGED)
    return bool(is_known) and before.commit == now.commit


def check_asked(runs: Mapping[str, MeasuredRun], cells: Iterable[Cell]) -> None:
    """Raises ``ValueError`` for a run that was made with other settings than its cell has now."""
    asked = {cell.name: question(cell) for cell in cells}
    for name, run in runs.items():
        if run.asks and run.asks != asked[name]:
            raise ValueError(f"{name} was asked something else than 'gapless sweep {NAME}' asks now; run it again")


def keep_runs(path: Path, runs: Mapping[str, MeasuredRun]) -> None:
    """Write the file, without the directories of the runs and the commands that repeat them. Raises ``OSError``."""
    rows = [json.dumps(_row(name, run), ensure_ascii=False) for name, run in sorted(runs.items())]
    cells = ",\n".join(rows)
    write_text_atomic(path, f'{{"sweep": "{NAME}", "cells": [\n{cells}\n]}}\n')


def _row(name: str, run: MeasuredRun) -> dict[str, object]:
    kept = {field: value for field, value in run.outcome.to_json().items() if field != "reached"}
    if run.outcome.status != "judged":
        kept["reasons"] = []  # they name files of the machine
    return {"cell": name, "labels": {SEED: str(run.seed)}, "asks": run.asks, **kept, "repro": ""}
