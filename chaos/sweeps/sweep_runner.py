"""Runs the cells of a sweep one after the other, each as a ``gapless run`` in its own process.

Owns when each cell is run and judged, and ``sweep.json``. Reads the outcome of a cell from its run directory
(``outcome``). Each run is judged at its end, or, if the sweep says so, several runs together in one Spark session while
nothing else runs: starting Spark takes longer than judging a small run.

Cells never run in parallel, because they would compete for the machine: throughput would mean nothing, and an
overloaded harness makes its run ``unknown``.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from chaos.conductor.child_runs import ChildRuns
from chaos.conductor.progress import Progress
from chaos.exits import Exit
from chaos.schedules.model import to_yaml
from chaos.sweeps.belonging import is_run_of
from chaos.sweeps.directory import CELLS, SweepDirectory
from chaos.sweeps.model import Cell, Sweep
from chaos.sweeps.outcome import (
    CellOutcome,
    has_judgment,
    interrupted,
    is_interrupted,
    is_unjudged,
    judged_outcome,
    made_by,
    sentence,
)
from chaos.sweeps.report import write_reports
from chaos.sweeps.summary import sweep_json
from cluster.process.supervisor import Supervisor
from cluster.seams.clock import Clock
from cluster.seams.units import seconds_of_ms
from verifier.evidence.how_many import how_many
from verifier.evidence.run_directory import RunDirectory, read_json, write_json_atomic, write_text_atomic

logger = logging.getLogger(__name__)

#: Estimated seconds that a cell takes in addition to its load, for its start, final read and judging. Used until a cell
#: has run.
BESIDE_THE_LOAD_S = 45.0

#: (cell, its run directory, its schedule's file or None) -> the command that runs it.
CellCommand = Callable[[Cell, Path, Path | None], list[str]]
#: Judges runs in one Spark session, and writes the verdict and exit status of each.
Judge = Callable[[Sequence[RunDirectory]], None]

INTERRUPTED = "the current cell ends early and heals; --resume runs it again (Ctrl-C again stops it at once)"
UNJUDGED = CellOutcome("unjudged", reasons=("it has run, and is not judged yet; --resume continues with that",))


class SweepRunner:
    """One sweep in its directory. ``outcomes`` has the outcome of every cell, by its name.

    ``insistent`` says whether a second interrupt came. ``started`` is the time when a resumed sweep first started. With
    ``fail_fast``, no cell starts after one that is invalid or has no verdict. With ``minutes``, no cell but the first
    starts that would end later than that, estimated from the previous cells.
    """

    def __init__(
        self,
        sweep: Sweep,
        wanted: dict[str, Any],
        directory: SweepDirectory,
        supervisor: Supervisor,
        clock: Clock,
        progress: Progress,
        command: CellCommand,
        judge: Judge = lambda _runs: None,
        *,
        insistent: Callable[[], bool] = lambda: False,
        started: str | None = None,
        fail_fast: bool = False,
        minutes: int | None = None,
    ) -> None:
        self._sweep = sweep
        self._wanted = wanted
        self._directory = directory
        self._clock = clock
        self._progress = progress
        self._command, self._judge = command, judge
        self._child_runs = ChildRuns(supervisor, clock, progress, insistent, interrupted=INTERRUPTED)
        self._fail_fast, self._minutes = fail_fast, minutes
        self._times: dict[str, Any] = {"started": started or _now(clock), "ended": None}
        self._took_s: list[float] = []
        self._judging_s = 0.0
        self._left = 0
        self.outcomes = {cell.name: self._before(cell) for cell in sweep.cells}

    def __repr__(self) -> str:
        return f"<SweepRunner {self._sweep.name} {self._directory.path}>"

    def run(self, cells: Sequence[Cell], asked: Sequence[Cell] = ()) -> None:
        """Run the cells that have no verdict yet. After a KeyboardInterrupt, the current cell ends in order first.

        ``asked`` has all cells that were selected when the sweep first started. Those that are not run now are shown as
        *not run*.
        """
        self._leave_out({cell.name for cell in self._sweep.cells} - {cell.name for cell in (*cells, *asked)})
        open_cells = [cell for cell in cells if self.outcomes[cell.name].status in ("not run", "interrupted")]
        self._judge_together(cells, at_least=1)
        if judged := [cell.name for cell in cells if self.outcomes[cell.name].status == "judged"]:
            one, several = "cell has a verdict already and is", "cells have a verdict already and are"
            self._progress.note(f"{how_many(len(judged), one, several)} not run again:")
            for name in judged:
                self._progress.note(f"  {name}: {self.outcomes[name].verdict}")
            if others := made_by([self.outcomes[name] for name in judged]):
                self._progress.note(f"  {others}")
        self.record()
        for number, cell in enumerate(open_cells, 1):
            if not self._has_time():
                left = {each.name for each in open_cells[number - 1 :]}
                told = how_many(len(left), "is left", "are left")
                self._progress.note(f"--minutes {self._minutes}: no time for another cell; {told}")
                self._settle(left)
                break
            self._left = len(open_cells) - number
            self._progress.phase(f"cell {number}/{len(open_cells)}", f"{cell.name}; {self._time_left(cell, 0.0)}")
            started_ms = self._clock.monotonic_ms()
            try:
                self.outcomes[cell.name] = self._conduct(cell)
            finally:
                self._took_s.append(seconds_of_ms(self._clock.monotonic_ms() - started_ms))
                self.record()
            done = self._judge_together(cells, at_least=max(1, self._sweep.judged_at_once) if self._left else 1)
            if self.outcomes[cell.name] is not UNJUDGED and cell not in done:
                done.append(cell)
                self._progress.note("  " + sentence(self.outcomes[cell.name]))
            statuses = {self.outcomes[each.name].exit_status for each in done}
            if self._fail_fast and self._left and not statuses <= {Exit.VALID, Exit.UNKNOWN}:
                self._progress.note(
                    f"--fail-fast: {how_many(self._left, 'cell is', 'cells are')} not run; --resume continues"
                )
                break
        self._judge_together(cells, at_least=1)

    def _judge_together(self, cells: Sequence[Cell], *, at_least: int) -> list[Cell]:
        """Judge the cells that have run but have no verdict, if there are at least ``at_least``; returns them."""
        pending = [cell for cell in cells if self.outcomes[cell.name] is UNJUDGED]
        if len(pending) < at_least:
            return []
        self._progress.phase("judge", f"{how_many(len(pending), 'run')} in one Spark session")
        started_ms = self._clock.monotonic_ms()
        try:
            self._judge([self._directory.run(cell) for cell in pending])
        finally:
            for cell in pending:
                self.outcomes[cell.name] = self._before(cell)
            self._judging_s += seconds_of_ms(self._clock.monotonic_ms() - started_ms)
            self.record()
        for cell in pending:
            self._progress.note(f"  {cell.name}: {sentence(self.outcomes[cell.name])}")
        return pending

    def finish(self) -> dict[str, Any]:
        """Note when the sweep ended and write all files. Returns the object in ``sweep.json``."""
        self._times["ended"] = _now(self._clock)
        return self.record()

    def record(self) -> dict[str, Any]:
        """Write what is known now to ``sweep.json`` and the report pages. Returns the object in ``sweep.json``."""
        ran = {
            cell.name: f"{CELLS}/{cell.name}" for cell in self._sweep.cells if self._directory.run(cell).path.is_dir()
        }
        whole = sweep_json(self._sweep, self._wanted, self.outcomes, ran, **self._times)
        write_json_atomic(self._directory.sweep_json, whole)
        write_reports(self._directory, self._sweep, self.outcomes)
        return whole

    def _before(self, cell: Cell) -> CellOutcome:
        """The outcome of a cell before it is run: *not run*, or what an earlier part of the sweep left."""
        if cell.inapplicable:
            return CellOutcome("inapplicable")
        directory = self._directory.run(cell)
        if not is_run_of(cell, directory):
            return CellOutcome("not run")
        if has_judgment(cell, directory):
            return judged_outcome(cell, directory)
        if is_unjudged(directory):
            return UNJUDGED
        return interrupted(directory) if is_interrupted(directory) else CellOutcome("not run")

    def _leave_out(self, names: set[str]) -> None:
        """Mark cells as *not asked*, except those that have begun, which are shown anyway."""
        begun = {cell.name for cell in self._sweep.cells if self._directory.run(cell).path.exists()}
        for name in names:
            if self.outcomes[name].status == "inapplicable" or (
                self.outcomes[name].status == "not run" and name not in begun
            ):
                self.outcomes[name] = CellOutcome("not asked")

    def _has_time(self) -> bool:
        """Whether ``--minutes`` leaves time for another cell, estimated from the previous ones."""
        if self._minutes is None or not self._took_s:
            return True
        spent_s = sum(self._took_s) + self._judging_s
        return spent_s * (1 + 1 / len(self._took_s)) <= self._minutes * 60

    def _settle(self, left: set[str]) -> None:
        """When the time is up, mark cells as *not asked* whose setting has run with another seed."""
        ran = {cell.setting for cell in self._sweep.cells if self.outcomes[cell.name].status in ("judged", "failed")}
        self._leave_out({cell.name for cell in self._sweep.cells if cell.name in left and cell.setting in ran})

    def _conduct(self, cell: Cell) -> CellOutcome:
        if (aside := self._directory.set_aside(cell)) is not None:
            left = (
                "an unfinished run" if is_run_of(cell, RunDirectory(aside)) else "a run that was asked something else"
            )
            self._progress.note(f"  what {left} left is kept in {aside.name}")
        schedule = None
        if cell.schedule is not None:
            schedule = self._directory.schedule(cell)
            write_text_atomic(schedule, to_yaml(cell.schedule))
        directory, log_path = self._directory.run(cell), self._directory.log(cell)
        argv = self._command(cell, directory.path, schedule)
        try:
            status = self._child_runs.conduct(cell.name, argv, log_path, lambda taken_s: self._time_left(cell, taken_s))
        except KeyboardInterrupt:
            is_over = has_judgment(cell, directory) or is_unjudged(directory)
            self.outcomes[cell.name] = self._before(cell) if is_over else interrupted(directory)
            raise
        if status in (Exit.VALID, Exit.INVALID, Exit.UNKNOWN):
            if has_judgment(cell, directory):
                return judged_outcome(cell, directory)
            if is_unjudged(directory):
                return UNJUDGED
        return CellOutcome(
            "failed",
            exit_status=int(Exit.HARNESS_FAILED),
            reasons=(f"it ended with {status} and no verdict; see {log_path}",),
        )

    def _time_left(self, cell: Cell, elapsed_s: float) -> str:
        """The estimated time left, in words, if the remaining cells take as long as the previous ones."""
        each_s = fmean(self._took_s) if self._took_s else BESIDE_THE_LOAD_S + cell.asked.time_limit_s
        present_s, later_s = max(0.0, each_s - elapsed_s), each_s * self._left
        if self._minutes is not None:
            later_s = min(later_s, max(0.0, self._minutes * 60 - sum(self._took_s) - elapsed_s - present_s))
        left_s = present_s + later_s
        return f"about {left_s / 60:.0f} min left" if left_s >= 90 else f"about {left_s:.0f} s left"


def stored(directory: SweepDirectory) -> dict[str, Any]:
    """The object in the ``sweep.json`` of an earlier part of the sweep. Raises ``OSError`` or ``ValueError``."""
    whole = read_json(directory.sweep_json)
    if not isinstance(whole.get("sweep"), str) or not isinstance(whole.get("wanted"), dict):
        raise ValueError(f"{directory.sweep_json} is not a sweep's: {json.dumps(whole)[:80]}")
    return whole


def _now(clock: Clock) -> str:
    return datetime.fromtimestamp(seconds_of_ms(clock.wall_ms()), UTC).isoformat()
