"""A sweep that is continued: what may be, what is refused, and that it says which runs it does not run again."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from chaos.commands.continued import resumed, same_again, take_over
from chaos.conductor.leftovers import FILE, WorkedOn
from chaos.conductor.progress import Progress
from chaos.exits import BadRequest
from chaos.sweeps.catalogue import find_sweep
from chaos.sweeps.directory import SweepDirectory
from chaos.sweeps.model import Sweep, SweepError, Wanted
from chaos.sweeps.sweep_runner import SweepRunner
from cluster.process.supervisor import Supervisor
from cluster.seams.clock import SystemClock
from tests.chaos.sweeps.finished import finish

WANTED = Wanted(seeds=(1, 2, 3), rate=900)
SWEEP: Sweep = find_sweep("seeds")(WANTED)


def _begun(path: Path, console: Console | None = None) -> SweepDirectory:
    """A sweep of which the first two cells have run."""
    directory = SweepDirectory.at(path)
    for cell in SWEEP.cells[:2]:
        finish(directory, cell)
    clock = SystemClock()
    with Supervisor(str(path)) as supervisor:
        progress = Progress(clock, console)
        SweepRunner(SWEEP, WANTED.to_json(), directory, supervisor, clock, progress, lambda *_: []).run(SWEEP.cells[:2])
    return directory


def test_the_same_again_in_the_same_place_continues(tmp_path: Path) -> None:
    """With another time limit for all of it, and on another day; not with other cells."""
    directory = _begun(tmp_path / "swept")
    again = replace(WANTED, minutes=9, day=20300101)
    assert same_again(SWEEP, again, tmp_path / "swept") == directory
    for other in (replace(WANTED, seeds=(1, 2)), replace(WANTED, rate=901), replace(WANTED, filters=("seed=1",))):
        with pytest.raises(SweepError, match=r"holds a sweep with other options; .* sweep --resume "):
            same_again(SWEEP, other, tmp_path / "swept")
    assert same_again(SWEEP, WANTED, tmp_path / "nothing") is None
    name, wanted, resumable = resumed(tmp_path / "swept", None, ())
    assert (name, wanted, resumable) == ("seeds", WANTED, directory)


def test_a_sweep_that_is_being_run_is_not_continued(tmp_path: Path) -> None:
    """The line says who runs it; what a killed one left is taken over."""
    directory = _begun(tmp_path / "swept")
    assert take_over(directory) == []
    with WorkedOn(directory.path, 7):
        with pytest.raises(BadRequest, match="is being run by process"):
            take_over(directory)
    (directory.path / FILE).write_text('{"run_id": 7, "conductor": {"pid": 1, "creation_time": 1.0}, "children": []}')
    (line,) = take_over(directory)
    assert "was left by a conductor that was killed (run 7)" in line


def test_what_is_not_run_again_is_named(tmp_path: Path) -> None:
    """With its verdict."""
    shown = io.StringIO()
    _begun(tmp_path / "swept", Console(file=shown, width=200))
    names = [cell.name for cell in SWEEP.cells[:2]]
    assert "2 cells have a verdict already and are not run again:" in shown.getvalue()
    assert all(f"  {name}: valid" in shown.getvalue() for name in names)
