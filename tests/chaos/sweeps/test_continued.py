"""A sweep that is continued: what may be, what is refused, and that it says which runs it does not run again."""

from __future__ import annotations

import io
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from chaos.commands.continued import resumed, same_again, take_over
from chaos.commands.main import run_command
from chaos.conductor.leftovers import FILE, WorkedOn
from chaos.conductor.progress import Progress
from chaos.exits import BadRequest
from chaos.experiment.command_line import words
from chaos.experiment.forms import ScheduleFile
from chaos.experiment.resolve import resolve
from chaos.schedules.model import from_yaml, to_yaml
from chaos.sweeps.belonging import is_asked_by
from chaos.sweeps.catalogue import SWEEPS, find_sweep
from chaos.sweeps.directory import SweepDirectory
from chaos.sweeps.model import Sweep, SweepError, Wanted
from chaos.sweeps.outcome import CellOutcome, made_by, outcome_of
from chaos.sweeps.report import write_reports
from chaos.sweeps.summary import exit_status, sweep_json
from chaos.sweeps.sweep_runner import SweepRunner
from cluster.process.supervisor import Supervisor
from cluster.seams.clock import SystemClock
from tests.chaos.sweeps.finished import finish
from tests.chaos.test_experiment import PARSE
from verifier.evidence import seal
from verifier.evidence.run_directory import read_json, write_json_atomic

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
    name, wanted, resumable = resumed(tmp_path / "swept")
    assert (name, wanted, resumable) == ("seeds", WANTED, directory)


def test_a_filter_of_resume_is_not_the_sweeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the sweep was asked for stays in its record: a later --resume runs what this one left out."""
    directory = _begun(tmp_path / "swept")
    monkeypatch.setattr("chaos.commands.sweep.check_java", lambda: None)
    monkeypatch.setattr("chaos.commands.sweep.check_spark_master", lambda _: None)
    monkeypatch.setattr("chaos.commands.sweep.log_to", lambda handler, *_, **__: handler.close())
    seed = SWEEP.cells[0].labels["seed"]
    assert run_command(["sweep", "--resume", str(directory.path), "--filter", f"seed={seed}", "-q"]) == 0
    whole = read_json(directory.sweep_json)
    assert Wanted.from_json(whole["wanted"]) == WANTED
    assert whole["counts"] == {"valid": 2, "not run": 1}


#: What may be said beside ``--resume``: which cells, what is done with their runs, what is shown.
BESIDE_RESUME = (
    *(("--filter", "seed=1"), ("--fail-fast",), ("--shrink", "60"), ("--list",), ("--keep", "all")),
    *(("--spark-master", "local[1]"), ("--json",), ("--quiet",), ("--verbose",)),
)


@pytest.mark.parametrize(
    "given",
    [
        ("seeds",),
        *(
            ("--minutes", "3"),
            ("--client", "confluent"),
            ("--rate", "9"),
            ("--defect", "lose-acked"),
            ("--out", "there"),
        ),
    ],
)
def test_what_makes_a_sweep_is_refused_beside_resume(
    given: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line names what was given, and everything that may be."""
    _begun(tmp_path / "swept")
    assert run_command(["sweep", "--resume", str(tmp_path / "swept"), *given]) == 254
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith(f"gapless: {given[0] if given[0].startswith('--') else 'NAME'} cannot be combined with")
    named = line.rpartition(" combined with is ")[2].replace(" and ", ", ").split(", ")
    assert sorted(named) == sorted(option for option, *_ in BESIDE_RESUME)


@pytest.mark.parametrize("given", BESIDE_RESUME)
def test_what_the_refusal_names_may_stand_beside_resume(
    given: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of them is taken, and the sweep is resumed with it."""
    directory = _begun(tmp_path / "swept")
    cell = SWEEP.cells[0].labels["seed"]
    given = tuple(f"seed={cell}" if each == "seed=1" else each for each in given)
    assert run_command(["sweep", "--resume", str(directory.path), "--list", *given]) == 0
    assert capsys.readouterr().out


def test_the_help_names_no_client_for_a_sweep_that_has_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --client each sweep has the client that it declares."""
    assert run_command(["sweep", "--help"]) == 0
    (load,) = re.findall(r"─ Load ─.*?╰", capsys.readouterr().out, re.DOTALL)
    assert "--client" in load and "default: the sweep's" in " ".join(load.replace("│", " ").split())
    assert "default: confluent" not in load


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
    """What is not run again is named with its verdict."""
    shown = io.StringIO()
    _begun(tmp_path / "swept", Console(file=shown, width=200))
    names = [cell.name for cell in SWEEP.cells[:2]]
    assert "2 cells have a verdict already and are not run again:" in shown.getvalue()
    assert all(f"  {name}: valid" in shown.getvalue() for name in names)


def _again(directory: SweepDirectory, sweep: Sweep = SWEEP) -> dict[str, str]:
    """How each cell stands when the sweep is continued."""
    clock = SystemClock()
    with Supervisor(str(directory.path)) as supervisor:
        runner = SweepRunner(sweep, {}, directory, supervisor, clock, Progress(clock), lambda *_: [])
        return {cell.name: runner.outcomes[cell.name].status for cell in sweep.cells}


@pytest.mark.parametrize("name", [*SWEEPS])
def test_every_cell_knows_its_own_run(name: str) -> None:
    """By what ``run.json`` says it was asked, after its way over the command line and through a schedule's file."""
    cells = find_sweep(name)(Wanted(seeds=(3,), day=20260101)).cells
    for cell in cells[:: max(1, len(cells) // 12)]:
        if not cell.inapplicable:
            asked = PARSE(words(replace(cell.asked, out="there"), everything=True))
            if cell.schedule is not None:
                asked = replace(asked, schedule=ScheduleFile(Path("x.yaml"), from_yaml(to_yaml(cell.schedule))))
            assert is_asked_by(cell, json.loads(json.dumps(resolve(asked)[0].to_json()))), cell.name


def test_a_run_that_was_asked_something_else_is_not_taken_for_the_cells(tmp_path: Path) -> None:
    """Another cell's directory, or that of another version of the matrix: its verdict says nothing about this cell."""
    directory = _begun(tmp_path / "swept")
    first, second, third = SWEEP.cells
    assert list(_again(directory).values()) == ["judged", "judged", "not run"]
    shutil.copytree(directory.run(second).path, directory.run(third).path)
    assert _again(directory)[third.name] == "not run"
    shorter = replace(SWEEP, cells=(replace(first, asked=replace(first.asked, time_limit_s=39.0)), second, third))
    assert list(_again(directory, shorter).values()) == ["not run", "judged", "not run"]
    # where it is written, what is kept of it and where it is judged does not change the run
    elsewhere = replace(first, asked=replace(first.asked, out="x", keep="none", spark_master="local[1]"))
    assert list(_again(directory, replace(SWEEP, cells=(elsewhere, second))).values()) == ["judged", "judged"]


def test_a_verdict_on_other_evidence_is_not_taken_for_the_runs(tmp_path: Path) -> None:
    """It names the seal of the evidence that it was made of."""
    directory = _begun(tmp_path / "swept")
    run = directory.run(SWEEP.cells[0])
    own = seal.take(run).digest
    verdict = read_json(run.verdict_json)
    for named, status in ((own, "judged"), ("0" * 64, "not run")):
        write_json_atomic(run.verdict_json, {**verdict, "stats": {**verdict["stats"], "seal": named}})
        assert _again(directory)[SWEEP.cells[0].name] == status


def test_a_cell_that_was_judged_again_has_its_last_verdict(tmp_path: Path) -> None:
    """``gapless verify`` writes the verdict, and not the exit status that the run ended with."""
    directory = _begun(tmp_path / "swept")
    run = directory.run(SWEEP.cells[0])
    write_json_atomic(run.verdict_json, {**read_json(run.verdict_json), "verdict": "invalid"})
    outcome = outcome_of(run)
    assert (outcome.verdict, outcome.exit_status, run.read_run()["exit_status"]) == ("invalid", 1, 0)
    assert exit_status([outcome]) == 1


def test_runs_of_different_commits_are_told_apart(tmp_path: Path) -> None:
    """A sweep that is continued after a change has verdicts of two programs: every page says so."""
    directory = _begun(tmp_path / "swept")
    for cell, commit in zip(SWEEP.cells, ("aaa", "bbb"), strict=False):
        run = directory.run(cell)
        write_json_atomic(run.run_json, {**run.read_run(), "versions": {"commit": commit}})
    outcomes = {cell.name: CellOutcome("not run") for cell in SWEEP.cells}
    outcomes |= {cell.name: outcome_of(directory.run(cell)) for cell in SWEEP.cells[:2]}
    write_reports(directory, SWEEP, outcomes)
    said = "the runs were made by different commits: aaa (1), bbb (1)"
    for page in (directory.summary_md, directory.sweep_md, directory.sweep_html):
        assert said in page.read_text()
    assert sweep_json(SWEEP, {}, outcomes, {})["commits"] == said
    one = dict.fromkeys(outcomes, outcomes[SWEEP.cells[0].name])
    assert made_by(list(one.values())) == ""
