"""The calls with which a sweep runs a cell and judges several runs together.

Owns the command line of a cell and the settings of the verdict. Does not own which cell is next, or when runs are
judged (``chaos.sweeps.sweep_runner``).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from chaos.commands.session import settle
from chaos.commands.verifier_process import judge_all
from chaos.experiment.choices import Keep
from chaos.experiment.command_line import words
from chaos.experiment.forms import ScheduleFile
from chaos.sweeps.model import Cell, Sweep
from chaos.sweeps.shrunk import MOST_RUNS, ShrinkCommand
from chaos.sweeps.sweep_runner import CellCommand, Judge
from verifier.evidence.run_directory import RunDirectory


class CellCalls(NamedTuple):
    """The calls of one sweep. ``left`` has a line on each thing that a killed sweep had left behind."""

    command: CellCommand
    judge: Judge
    left: Sequence[str]
    shrink: ShrinkCommand


def calls_of(chosen: Sweep, keep: Keep, spark_master: str, left: Sequence[str]) -> CellCalls:
    """The calls for this sweep."""

    def command(cell: Cell, path: Path, schedule: Path | None) -> list[str]:
        later = bool(chosen.judged_at_once)
        asked = replace(cell.asked, out=str(path), keep=keep.value, spark_master=spark_master, unjudged=later)
        if schedule is not None and cell.schedule is not None:
            asked = replace(asked, schedule=ScheduleFile(schedule, cell.schedule))
        return [sys.executable, "-m", "chaos.commands.main", *words(asked, everything=True)]

    def judge(runs: Sequence[RunDirectory]) -> None:
        def said(run: RunDirectory, failure: str | None) -> None:
            if failure is None:  # else it has no verdict, and stays as it is
                settle(run, keep.value)

        judge_all(runs, spark_master, said, quiet=True)

    def shrink(run: Path, out: Path, minutes: int) -> list[str]:
        options = ["--out", str(out), "--minutes", str(minutes), "--max-runs", str(MOST_RUNS)]
        own = ["--spark-master", spark_master, "--quiet"]
        return [sys.executable, "-m", "chaos.commands.main", "shrink", str(run), *options, *own]

    return CellCalls(command, judge, left, shrink)
