"""The runs of which ``docs/sensitivity.md`` is made: read from ``sweep.json`` files, and kept from day to day.

Owns the file in which they are kept (``docs/sensitivity.json``: the form of ``sweep.json``, but with a line for each
run, and only what a figure or a reader needs). The figures are ``sensitivity_figures``'.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from chaos.sweeps.model import SEED
from chaos.sweeps.outcome import CellOutcome
from chaos.sweeps.sensitivity import NAME
from verifier.evidence.run_directory import read_json, write_text_atomic


class MeasuredRun(NamedTuple):
    """What came of one cell."""

    seed: int
    outcome: CellOutcome


def new_runs(paths: Iterable[Path]) -> dict[str, MeasuredRun]:
    """The cells of these ``sweep.json`` that were to be run, by name.

    Raises ``OSError``; ``ValueError`` if one is not from this sweep, or if two ran the same cell.
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
    """The cells of one file that were to be run, by name. Raises ``OSError``, ``ValueError``."""
    told = read_json(path)
    if told.get("sweep") != NAME:
        raise ValueError(f"{path} is not from 'gapless sweep {NAME}'; use one that is")
    asked = (cell for cell in told["cells"] if cell["status"] != "not asked")
    return {str(cell["cell"]): MeasuredRun(int(cell["labels"][SEED]), CellOutcome.from_json(cell)) for cell in asked}


def keep_runs(path: Path, runs: Mapping[str, MeasuredRun]) -> None:
    """Write the file. Where a run was made, and how to repeat it there, is left out. Raises ``OSError``."""
    rows = [
        json.dumps({"cell": name, "labels": {SEED: str(run.seed)}, **_kept(run.outcome)}, ensure_ascii=False)
        for name, run in sorted(runs.items())
    ]
    cells = ",\n".join(rows)
    write_text_atomic(path, f'{{"sweep": "{NAME}", "cells": [\n{cells}\n]}}\n')


def _kept(outcome: CellOutcome) -> dict[str, object]:
    return {name: value for name, value in outcome.to_json().items() if name != "reached"} | {"repro": ""}
