"""The runner with programs that only look like ``gapless run``: order, resuming, failures, interrupts."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.commands import cell_calls
from chaos.conductor.progress import Progress
from chaos.exits import Exit
from chaos.experiment.choices import Keep
from chaos.sweeps.catalogue import find_sweep
from chaos.sweeps.directory import SweepDirectory
from chaos.sweeps.model import Cell, Sweep, Wanted
from chaos.sweeps.summary import exit_status
from chaos.sweeps.sweep_runner import SweepRunner, stored
from cluster.process.supervisor import Supervisor
from cluster.seams.clock import SystemClock
from tests.chaos.sweeps.finished import finish
from verifier.evidence.run_directory import RunDirectory, read_json, write_json_atomic

SWEEP: Sweep = find_sweep("seeds")(Wanted(seeds=(1, 2, 3)))


#: The program of a cell during which the user interrupts the sweep.
INTERRUPTS = (
    "import os, signal, time\n"
    "def end(*_): print('healed'); raise SystemExit(2)\n"
    "signal.signal(signal.SIGINT, end)\n"
    "os.kill(int(os.environ['OWNER']), signal.SIGINT)\n"
    "time.sleep(60)"
)


def interrupt(runner: SweepRunner) -> None:
    """Run all, until the program of a cell interrupts it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OWNER", str(os.getpid()))
        previous = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                runner.run(SWEEP.cells)
        finally:
            signal.signal(signal.SIGINT, previous)


class Place:
    """A sweep's directory, and a runner whose cells print, and end as they are told to.

    ``at_once`` is how many are judged together; ``judged`` are the seeds of those that were, one list each time.
    """

    def __init__(self, path: Path, supervisor: Supervisor) -> None:
        self.directory = SweepDirectory.at(path)
        self.supervisor = supervisor
        self.ran: list[str] = []
        self.programs: dict[str, str] = {}
        self.judged: list[list[int]] = []

    def runner(self, *, fail_fast: bool = False, at_once: int = 0) -> SweepRunner:
        clock = SystemClock()
        wanted = Wanted(seeds=(1, 2, 3)).to_json()
        sweep = replace(SWEEP, judged_at_once=at_once)
        return SweepRunner(
            sweep,
            wanted,
            self.directory,
            self.supervisor,
            clock,
            Progress(clock),
            self.unjudged if at_once else self.command,
            self.judge,
            fail_fast=fail_fast,
        )

    def unjudged(self, cell: Cell, path: Path, schedule: Path | None) -> list[str]:
        """The program of a cell that is judged later."""
        argv = self.command(cell, path, schedule)
        run = self.directory.run(cell)
        if not run.path.exists():
            finish(self.directory, cell)
        write_json_atomic(run.run_json, {**run.read_run(), "ended": "now", "exit_status": None})
        run.seal_json.touch()
        return argv

    def judge(self, runs: Sequence[RunDirectory]) -> None:
        self.judged.append([run.read_run()["seed"] for run in runs])
        for run in runs:
            verdict = read_json(run.verdict_json)["verdict"]
            write_json_atomic(run.run_json, {**run.read_run(), "exit_status": {"valid": 0, "invalid": 1}[verdict]})

    def command(self, cell: Cell, path: Path, schedule: Path | None) -> list[str]:
        """A cell's program: by default it leaves at once, and a finished run lies there."""
        self.ran.append(cell.labels["seed"])
        program = self.programs.get(cell.labels["seed"])
        if program is None:
            finish(self.directory, cell)
        return [sys.executable, "-I", "-S", "-c", program or "print('done')"]


@pytest.fixture
def place(tmp_path: Path) -> object:
    with Supervisor(str(tmp_path)) as supervisor:
        yield Place(tmp_path / "sweep", supervisor)


def test_cells_run_in_order_and_a_resumed_sweep_runs_the_rest(place: Place) -> None:
    """Who has a verdict is not run again; who failed is, and what it left stands aside."""
    place.programs["2"] = "raise SystemExit(255)"
    first = place.runner()
    first.run(SWEEP.cells)
    assert place.ran == ["1", "2", "3"]
    statuses = [first.outcomes[cell.name].status for cell in SWEEP.cells]
    assert statuses == ["judged", "failed", "judged"]
    assert first.outcomes[SWEEP.cells[1].name].exit_status == 255
    # each was judged at its own end: no one is asked to judge none
    assert place.judged == []
    whole = first.finish()
    assert stored(place.directory) == json.loads(json.dumps(whole))
    assert whole["counts"] == {"valid": 2, "failed": 1}
    place.directory.run(SWEEP.cells[1]).path.mkdir()
    del place.programs["2"]
    again = place.runner()
    place.ran.clear()
    again.run(SWEEP.cells)
    assert place.ran == ["2"]
    assert {outcome.status for outcome in again.outcomes.values()} == {"judged"}
    assert len(list((place.directory.path / "cells").glob("*.unfinished-1"))) == 1


def test_a_sweep_may_end_with_its_first_red_cell(place: Place) -> None:
    """What is behind it is not run, and another part of the sweep goes on with it."""
    place.programs["2"] = "raise SystemExit(255)"
    runner = place.runner(fail_fast=True)
    runner.run(SWEEP.cells)
    assert place.ran == ["1", "2"]
    assert [runner.outcomes[cell.name].status for cell in SWEEP.cells] == ["judged", "failed", "not run"]
    del place.programs["2"]
    place.runner(fail_fast=True).run(SWEEP.cells)
    assert place.ran == ["1", "2", "2", "3"]


def test_runs_may_be_judged_together(place: Place) -> None:
    """As many at once as the sweep says, and what is left at the end."""
    runner = place.runner(at_once=2)
    runner.run(SWEEP.cells)
    assert place.ran == ["1", "2", "3"] and place.judged == [[1, 2], [3]]
    assert runner.finish()["counts"] == {"valid": 3}
    assert {outcome.exit_status for outcome in runner.outcomes.values()} == {0}


def test_what_was_not_judged_is_judged_first_by_a_resumed_sweep(place: Place) -> None:
    """It is not run again; and the red one among those that were judged together ends a sweep that fails fast."""
    place.programs["2"] = INTERRUPTS
    runner = place.runner(at_once=3)
    interrupt(runner)
    statuses = [runner.outcomes[cell.name].status for cell in SWEEP.cells]
    assert statuses == ["unjudged", "unjudged", "not run"] and place.judged == []
    verdict = place.directory.run(SWEEP.cells[0]).verdict_json
    write_json_atomic(verdict, {**read_json(verdict), "verdict": "invalid"})
    place.ran.clear()
    again = place.runner(at_once=3)
    again.run(SWEEP.cells)
    assert (place.ran, place.judged) == (["3"], [[1, 2], [3]])
    assert [again.outcomes[cell.name].verdict for cell in SWEEP.cells] == ["invalid", "valid", "valid"]


def test_a_run_that_says_valid_and_left_nothing_has_failed(place: Place) -> None:
    """The exit status alone is no verdict."""
    place.programs["1"] = "print('valid, honestly')"
    runner = place.runner()
    runner.run(SWEEP.cells[:1])
    outcome = runner.outcomes[SWEEP.cells[0].name]
    assert outcome.status == "failed"
    assert exit_status([outcome]) == Exit.HARNESS_FAILED
    assert "no verdict; see" in outcome.reasons[0]
    assert "honestly" in place.directory.log(SWEEP.cells[0]).read_text()


def test_what_ends_as_an_unknown_run_does_and_left_no_verdict_ends_a_sweep_that_fails_fast(place: Place) -> None:
    """The status of a program that died says nothing about the cluster."""
    place.programs["1"] = "raise SystemExit(2)"
    runner = place.runner(fail_fast=True)
    runner.run(SWEEP.cells)
    assert [runner.outcomes[cell.name].status for cell in SWEEP.cells] == ["failed", "not run", "not run"]


def test_runs_that_no_one_judged_leave_no_green_sweep(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verifier refused them: they are shown, the sweep is unknown, and it is judged when it is continued."""
    judge = place.judge
    monkeypatch.setattr(place, "judge", lambda _: None)
    runner = place.runner(at_once=3)
    runner.run(SWEEP.cells)
    assert {outcome.status for outcome in runner.outcomes.values()} == {"unjudged"}
    assert exit_status([*runner.outcomes.values()]) == Exit.UNKNOWN
    assert runner.finish()["counts"] == {"unjudged": 3}
    assert place.directory.summary_md.read_text().startswith("# unjudged: sweep seeds\n")
    assert 'errors="3"' in place.directory.junit_xml.read_text()
    assert "it has run, and is not judged yet" in place.directory.sweep_html.read_text()
    monkeypatch.setattr(place, "judge", judge)
    again = place.runner(at_once=3)
    again.run(SWEEP.cells)
    assert place.ran == ["1", "2", "3"] and exit_status([*again.outcomes.values()]) == Exit.VALID


def test_a_run_that_another_verifier_judges_is_not_settled(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has until then is no verdict: it would be taken for one, and never be judged again."""
    cell = SWEEP.cells[0]
    place.unjudged(cell, Path(), None)
    run = place.directory.run(cell)
    monkeypatch.setattr(
        cell_calls,
        "judge_all",
        lambda runs, _master, said, **_: [said(each, "another verifier judges it") for each in runs],
    )
    calls = cell_calls.calls_of(SWEEP, Keep.NONE, "local[2]", [])
    calls.judge([run])
    assert run.read_run()["exit_status"] is None
    monkeypatch.setattr(cell_calls, "judge_all", lambda runs, _master, said, **_: [said(each, None) for each in runs])
    calls.judge([run])
    assert run.read_run()["exit_status"] == 0


def test_an_interrupt_lets_the_present_cell_end_and_starts_no_other(place: Place) -> None:
    """The cell gets SIGINT and time to heal and to judge; the record says what was not run."""
    place.programs["1"] = INTERRUPTS
    runner = place.runner()
    interrupt(runner)
    assert place.ran == ["1"]
    assert "healed" in place.directory.log(SWEEP.cells[0]).read_text()
    assert runner.finish()["counts"] == {"interrupted": 1, "not run": 2}
    assert not any(child.is_running() for child in place.supervisor.children)


def test_cells_that_were_not_asked_for_are_not_waited_for(place: Place) -> None:
    """Their outcome says so; one that has run before is shown all the same, and a resumed sweep may ask for them."""
    runner = place.runner()
    runner.run(SWEEP.cells[:1])
    assert runner.finish()["counts"] == {"valid": 1}
    assert [runner.outcomes[cell.name].status for cell in SWEEP.cells] == ["judged", "not asked", "not asked"]
    again = place.runner()
    again.run(SWEEP.cells[1:2])
    assert [again.outcomes[cell.name].status for cell in SWEEP.cells] == ["judged", "judged", "not asked"]


def test_a_cell_that_failed_is_not_forgotten_by_a_filter(place: Place) -> None:
    """It was begun, so it is told as one that is to be run, whatever another part of the sweep asks for."""
    place.programs["1"] = "raise SystemExit(255)"
    first = place.runner()
    finish(place.directory, SWEEP.cells[0])
    place.directory.run(SWEEP.cells[0]).verdict_json.unlink()
    first.run(SWEEP.cells[:1])
    place.directory.run(SWEEP.cells[0]).path.mkdir()
    again = place.runner()
    again.run(SWEEP.cells[1:2])
    assert [again.outcomes[cell.name].status for cell in SWEEP.cells] == ["not run", "judged", "not asked"]
    assert again.finish()["counts"] == {"valid": 1, "not run": 1}


def test_a_cell_that_was_interrupted_says_so_until_it_is_run_again(place: Place) -> None:
    """Also when another part of the sweep is gone on with."""
    finish(place.directory, SWEEP.cells[0], verdict="unknown", interrupted=True)
    runner = place.runner()
    runner.run(SWEEP.cells[1:2])
    assert runner.outcomes[SWEEP.cells[0].name].status == "interrupted"
    runner.run(SWEEP.cells[:1])
    assert runner.outcomes[SWEEP.cells[0].name].status == "judged"


def test_what_an_interrupted_cell_lost_is_not_run_again(place: Place) -> None:
    """What was read back of it was invalid: that stays, is red, and no later run that is valid takes its place."""
    finish(place.directory, SWEEP.cells[0], verdict="invalid", forbidden={"lost-write": 3}, interrupted=True)
    runner = place.runner()
    runner.run(SWEEP.cells)
    outcome = runner.outcomes[SWEEP.cells[0].name]
    assert (outcome.status, outcome.verdict, place.ran) == ("judged", "invalid", ["2", "3"])
    assert exit_status(list(runner.outcomes.values()), interrupted=True) == 1


@pytest.mark.parametrize("text", ["", "{", "[]", '{"sweep": 3, "wanted": {}}', '{"sweep": "seeds"}'])
def test_what_is_no_record_of_a_sweep_is_refused(place: Place, text: str) -> None:
    """A directory of something else is not gone on with."""
    place.directory.sweep_json.write_text(text)
    with pytest.raises(ValueError, match=r".+"):
        stored(place.directory)
