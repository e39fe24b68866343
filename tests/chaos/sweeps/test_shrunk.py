"""Red runs of a sweep are shrunk: which, for how long, and what is said of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.commands import sweep as command
from chaos.commands.cell_calls import calls_of
from chaos.commands.main import run_command
from chaos.conductor.progress import Progress
from chaos.experiment.choices import Keep
from chaos.sweeps.directory import SweepDirectory
from chaos.sweeps.model import Cell, Sweep, Wanted
from chaos.sweeps.nightly import build
from chaos.sweeps.outcome import CellOutcome, outcome_of
from chaos.sweeps.report import write_reports
from chaos.sweeps.shrunk import MOST_RUNS, shrink_red, shrunk_of, to_shrink
from cluster.seams.clock import SystemClock
from tests.chaos.sweeps.finished import finish
from verifier.evidence.run_directory import write_json_atomic

SWEEP = build(Wanted(day=20260101, filters=("workload=steady",)))
CELLS = [cell for cell in SWEEP.cells if cell.labels["workload"] == "steady"]
PLAY = ["run", "--seed", "7", "--time-limit", "12"]


class ByHand(SystemClock):
    """A clock that goes on only when it is put forward."""

    now_ms = 0

    def monotonic_ms(self) -> int:
        return self.now_ms


class Runs:
    """Stands in for ``gapless shrink``: each call takes ``minutes`` and writes a result."""

    def __init__(self, clock: ByHand, minutes: float = 0.0, best: dict[str, Any] | None = None) -> None:
        self.clock, self.minutes, self.best = clock, minutes, best
        self.asked: list[tuple[str, int]] = []

    def conduct(self, _name: str, argv: Sequence[str], _log: Path, left: Callable[[float], str]) -> int:
        assert "more red run" in left(1.0)
        out = Path(argv[1])
        self.asked.append((out.name, int(argv[2])))
        self.clock.now_ms += int(self.minutes * 60_000)
        out.mkdir(parents=True)
        counts = {"tries": 3, "failed": 3 if self.best else 0, "without_verdict": 0}
        whole = {"events_before": 40, "best": self.best, "before": counts, "after": counts}
        write_json_atomic(out / "shrink.json", whole)
        return 0


@pytest.fixture
def directory(tmp_path: Path) -> SweepDirectory:
    return SweepDirectory.at(tmp_path / "night")


def _shrink(cells: Sequence[Cell], directory: SweepDirectory, runs: Any, minutes: int) -> None:
    with Progress(runs.clock, is_silent=True) as progress:
        shrink_red(
            cells,
            directory,
            runs,
            runs.clock,
            progress,
            lambda run, out, most: [str(run), str(out), str(most)],
            minutes,
        )


def test_of_runs_with_the_same_anomalies_the_first_is_shrunk() -> None:
    """What is valid, unknown or without a verdict is not: nothing failed there that could be tried for."""

    def invalid(**found: int) -> CellOutcome:
        return CellOutcome("judged", verdict="invalid", forbidden=found)

    outcomes = {cell.name: CellOutcome("not asked") for cell in SWEEP.cells}
    outcomes[CELLS[0].name] = CellOutcome("judged", verdict="valid")
    outcomes[CELLS[1].name] = invalid(lost=3)
    outcomes[CELLS[2].name] = CellOutcome("failed", exit_status=255)
    outcomes[CELLS[3].name] = invalid(lost=1, stale=2)
    outcomes[CELLS[4].name] = invalid(lost=9)
    outcomes[CELLS[5].name] = CellOutcome("judged", verdict="unknown", forbidden={})
    assert to_shrink(SWEEP, outcomes) == [CELLS[1], CELLS[3]]


def test_each_has_its_share_of_the_minutes_that_are_left(directory: SweepDirectory) -> None:
    """What one leaves the others have; the first always has its turn, and one for which little is left has none."""
    quick = Runs(ByHand(), minutes=2)
    _shrink(CELLS[:3], directory, quick, 30)
    assert quick.asked == [(CELLS[0].name, 10), (CELLS[1].name, 14), (CELLS[2].name, 26)]
    slow = Runs(ByHand(), minutes=4)
    _shrink(CELLS[:6], directory, slow, 6)
    assert slow.asked == [(CELLS[3].name, 2)], "those before have been shrunk already"


def test_the_pages_say_what_came_of_it(directory: SweepDirectory) -> None:
    """Beside the run in summary.md: how small, how often it failed, and the file; or that it failed no more."""
    first, second, broken = CELLS[:3]
    outcomes = {cell.name: CellOutcome("not asked") for cell in SWEEP.cells}
    for cell in (first, second, broken):
        finish(directory, cell, verdict="invalid", forbidden={"lost-write": 12})
        outcomes[cell.name] = outcome_of(directory.run(cell))
    clock = ByHand()
    _shrink([first], directory, Runs(clock, best={"events": 2, "time_limit_s": 12.0, "play": PLAY}), 9)
    _shrink([second], directory, Runs(clock), 9)
    directory.shrunk(broken).mkdir(parents=True)
    (directory.shrunk(broken) / "shrink.json").write_text('{"best": [')
    found = shrunk_of(directory, first)
    assert found is not None and found.play == tuple(PLAY)
    assert shrunk_of(directory, broken) is None
    write_reports(directory, SWEEP, outcomes)
    summary = directory.summary_md.read_text()
    smaller = "shrunk to 2 of 40 faults and 12 s of load, which failed in 3 of 3 tries; the whole run failed in 3 of 3"
    assert f"  - {smaller} tries; `shrunk/{first.name}/schedule.yaml`\n" in summary
    assert "  - not shrunk: repeated, it failed in 0 of 3 tries\n" in summary
    assert summary.count("shrunk") == 3


@pytest.mark.parametrize(
    ("not_smaller", "after", "said"),
    [
        (None, (0, 0), "shrunk to 2 of 40 faults and 12 s of load, which failed when it was found, and was not tried"),
        ("nothing smaller was tried", (3, 3), "not shrunk: nothing smaller was tried; the whole run failed in 3 of 3"),
    ],
)
def test_what_was_not_tried_is_said_so(
    not_smaller: str | None, after: tuple[int, int], said: str, directory: SweepDirectory
) -> None:
    """The whole is not called shrunk, and a run that was not tried again did not fail in 0 of 0 tries."""
    counts = [dict(zip(("tries", "failed"), each, strict=True)) for each in ((3, 3), after)]
    best = {"events": 2, "time_limit_s": 12.0, "play": PLAY}
    whole = {"events_before": 40, "before": counts[0], "after": counts[1], "best": best, "not_smaller": not_smaller}
    directory.shrunk(CELLS[0]).mkdir(parents=True)
    (directory.shrunk(CELLS[0]) / "shrink.json").write_text(json.dumps(whole))
    assert str(shrunk_of(directory, CELLS[0])).startswith(said)


def test_the_command_shrinks_a_run_of_the_sweep_within_bounds(tmp_path: Path) -> None:
    """As ``gapless shrink`` takes it: the run, where to write, minutes and runs."""
    shrink = calls_of(SWEEP, Keep.FAILED, "local[2]", ()).shrink
    assert shrink(tmp_path / "run", tmp_path / "out", 7) == [
        *(sys.executable, "-m", "chaos.commands.main", "shrink", str(tmp_path / "run"), "--out", str(tmp_path / "out")),
        *("--minutes", "7", "--max-runs", str(MOST_RUNS), "--spark-master", "local[2]", "--quiet"),
    ]


@pytest.mark.parametrize(("options", "expected"), [((), []), (("--shrink", "9"), [9])])
def test_a_sweep_shrinks_when_it_is_asked_to(
    options: Sequence[str], expected: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its cells have run, what is red; without the option nothing."""
    shrunk: list[int] = []

    class Runner:
        def __init__(self, sweep: Sweep, *_: Any, **__: Any) -> None:
            self.outcomes = {cell.name: CellOutcome("judged", verdict="valid", exit_status=0) for cell in sweep.cells}

        def run(self, _cells: Any, _asked: Any) -> None:
            assert not shrunk

        def finish(self) -> dict[str, Any]:
            return {}

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "check_java", lambda: None)
    monkeypatch.setattr(command, "SweepRunner", Runner)
    monkeypatch.setattr(command, "Supervisor", lambda *_: SimpleNamespaceContext())
    monkeypatch.setattr(command, "log_to", lambda handler, *_, **__: handler.close())
    monkeypatch.setattr(command, "shrink_red", lambda *given: shrunk.append(given[-1]))
    arguments = ["sweep", "nightly", "--filter", "workload=steady,faults=network", "--out", "night", "--json", "-q"]
    assert run_command([*arguments, *options]) == 0
    assert shrunk == expected


class SimpleNamespaceContext(SimpleNamespace):
    """A Supervisor that starts nothing."""

    def __enter__(self) -> SimpleNamespaceContext:
        return self

    def __exit__(self, *_: object) -> None:
        return None
