"""The nightly sweep: its matrix, its order, its seeds, how long it lasts, and what it leaves for CI."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from chaos.commands import sweep as command
from chaos.commands.main import run_command
from chaos.conductor.progress import Progress
from chaos.experiment.asked import Asked
from chaos.experiment.resolve import resolve
from chaos.faults.catalogue import parse_faults
from chaos.sweeps.directory import SweepDirectory
from chaos.sweeps.model import Cell, Wanted, parse_filter
from chaos.sweeps.nightly import FAULT_SETS, SWARMS, build, suits
from chaos.sweeps.outcome import CellOutcome, outcome_of
from chaos.sweeps.report import write_reports
from chaos.sweeps.report.words import red_lines
from chaos.sweeps.sweep_runner import SweepRunner
from cluster.process.supervisor import Supervisor
from cluster.seams.clock import SystemClock
from loadgen.workloads import CATALOGUE
from tests.chaos.sweeps.finished import finish

DAY = 20260101
SUITED = {
    name: [workload for workload in CATALOGUE if suits(faults, CATALOGUE[workload])]
    for name, (faults, _) in FAULT_SETS.items()
} | {name: [*CATALOGUE] for name in SWARMS}
#: The sets that go with any workload.
ANY_LOAD = (
    *("crashes", "storms", "network", "partitions", "links", "requests", "zookeeper", "orders", "disks", "files"),
    *("clocks", "load", "composed", *SWARMS),
)


def test_the_matrix_is_all_there_is() -> None:
    """The sets but the last share out what ``all`` has, which the last composes; each with what it suits."""
    *parts, composed = FAULT_SETS.values()
    shared = [name for faults, _ in parts for name in parse_faults(faults)]
    missing = sorted(set(parse_faults("all")) - set(shared))
    assert not missing, f"add it to a set in chaos/sweeps/nightly.py: {', '.join(missing)}"
    assert sorted(shared) == sorted(parse_faults("all"))
    assert composed == ("all", True)
    places = [(cell.labels["faults"], cell.labels["workload"]) for cell in build(Wanted(day=DAY)).cells]
    assert sorted(places) == sorted((faults, workload) for faults in SUITED for workload in SUITED[faults])
    assert all(SUITED[faults] == [*CATALOGUE] for faults in ANY_LOAD)


def test_a_set_on_coordinators_goes_with_what_keeps_them_at_work() -> None:
    """And no fault of it would be refused there."""
    for faults in ("transactions", "groups"):
        for workload in SUITED[faults]:
            resolve(Asked(seed=1, faults=FAULT_SETS[faults][0], workload=workload))
        assert "steady" not in SUITED[faults]


def test_a_short_night_has_every_fault_set_and_a_week_every_workload() -> None:
    """The order is diagonal and begins elsewhere each night; what has no rate comes last."""
    seen = set()
    for day in range(DAY, DAY + 7):
        cells = build(Wanted(day=day)).filtered([])
        sets = [faults for faults in SUITED if SUITED[faults]]
        first = cells[: len(sets)]
        assert [cell.labels["faults"] for cell in first] == sets
        any_load = [cell.labels["workload"] for cell in first if SUITED[cell.labels["faults"]] == [*CATALOGUE]]
        assert len(set(any_load)) == len(any_load) == len(ANY_LOAD)
        seen |= {cell.labels["workload"] for cell in first}
        assert {cell.labels["workload"] for cell in cells[-len(ANY_LOAD) :]} == {"unlimited"}
    assert seen == CATALOGUE.keys() - {"unlimited"}


def test_seeds_are_of_the_date_and_more_of_them_where_there_is_time() -> None:
    """One seed for the whole matrix; of a part of it, as many rounds as the minutes could suffice for."""
    assert build(Wanted(day=DAY, minutes=20)).seeds == (20260101001,)
    some = Wanted(day=DAY, minutes=5, filters=("faults=network,workload=small|large",))
    assert build(some).seeds == (20260101001, 20260101002, 20260101003, 20260101004)
    cells = build(some).filtered(parse_filter(some.filters))
    assert [cell.asked.seed % 1000 for cell in cells] == [1, 1, 2, 2, 3, 3, 4, 4]
    late = Wanted(day=DAY, minutes=5, filters=("faults=network,workload=small,seed=20260101003",))
    assert [cell.asked.seed for cell in build(late).filtered(parse_filter(late.filters))] == [20260101003]
    assert build(Wanted(day=DAY, seeds=(7, 9), minutes=500)).seeds == (7, 9)


def test_a_night_is_gone_on_with_as_it_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On another day and with another filter too it has the seeds, the order and the defect that it had."""
    asked: list[Any] = []
    monkeypatch.setattr(command, "_run", lambda chosen, wanted, cells, *_, **__: asked.append((wanted, cells)) or 0)
    monkeypatch.setattr(command, "check_java", lambda: None)
    monkeypatch.chdir(tmp_path)
    begun = ["--minutes", "5", "--filter", "faults=network,workload=small", "--defect", "lose-acked:0.05"]
    assert run_command(["sweep", "nightly", *begun, "--out", "night"]) == 0
    wanted, cells = asked[0]
    assert len(cells) == 8 and all(cell.asked.defects == ("lose-acked:0.05",) for cell in cells)
    stored = {"schema": 2, "sweep": "nightly", "wanted": wanted.to_json()}
    (tmp_path / "night" / "sweep.json").write_text(json.dumps(stored))
    monkeypatch.setattr(command, "datetime", SimpleNamespace(now=lambda zone: datetime(2001, 2, 3, tzinfo=zone)))
    assert run_command(["sweep", "--resume", "night"]) == 0
    assert asked[1][1] == cells
    assert run_command(["sweep", "--resume", "night", "--filter", "workload=small"]) == 0
    assert {cell.asked.seed for cell in asked[2][1]} == {cell.asked.seed for cell in cells}


class ByHand(SystemClock):
    """A clock that goes on only when it is put forward."""

    now_ms = 0

    def monotonic_ms(self) -> int:
        return self.now_ms


@pytest.fixture
def directory(tmp_path: Path) -> SweepDirectory:
    return SweepDirectory.at(tmp_path / "night")


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    with Supervisor(str(tmp_path)) as made:
        yield made


@pytest.mark.parametrize(
    ("minutes", "ended"),
    [
        # the first one always runs; what has run with one seed does not wait for the next
        (1, ["judged", "not run", "not asked", "not run"]),
        # one takes 90 s
        (4, ["judged", "judged", "not asked", "not asked"]),
        (5, ["judged", "judged", "judged", "not asked"]),
        (60, ["judged"] * 4),
    ],
)
def test_no_cell_begins_that_would_end_too_late(
    directory: SweepDirectory, supervisor: Supervisor, minutes: int, ended: list[str]
) -> None:
    """Going by those before it; what is left is told apart from what was never meant."""
    wanted = Wanted(day=DAY, seeds=(1, 2), minutes=minutes, filters=("faults=crashes|network,workload=steady",))
    chosen, clock = build(wanted), ByHand()

    def program(cell: Cell, path: Path, schedule: Path | None) -> list[str]:
        clock.now_ms += 90_000
        finish(directory, cell)
        return [sys.executable, "-I", "-S", "-c", ""]

    cells = chosen.filtered(parse_filter(wanted.filters))
    progress = Progress(clock)
    runner = SweepRunner(chosen, wanted.to_json(), directory, supervisor, clock, progress, program, minutes=minutes)
    runner.run(cells)
    assert [cell.asked.seed for cell in cells] == [1, 1, 2, 2]
    assert [runner.outcomes[cell.name].status for cell in cells] == ended


def test_a_red_night_names_its_runs_and_how_to_repeat_them(directory: SweepDirectory) -> None:
    """summary.md, junit.xml and the terminal: the anomaly, the defect that was planted, the repro line."""
    wanted = Wanted(day=DAY, defects=("lose-acked:0.05",), filters=("workload=steady",))
    chosen = build(wanted)
    fine, red, broken, bare = chosen.filtered(parse_filter(wanted.filters))[:4]
    outcomes = {cell.name: CellOutcome("not asked") for cell in chosen.cells}
    finish(directory, fine)
    finish(directory, red, verdict="invalid", forbidden={"lost-write": 12})
    finish(directory, bare, counted=False, verdict="unknown")
    directory.run(bare).junit_xml.unlink()
    outcomes |= {cell.name: outcome_of(directory.run(cell)) for cell in (fine, red, bare)}
    outcomes[broken.name] = CellOutcome("failed", exit_status=255, reasons=("it ended with 255 <\x1b>",))
    write_reports(directory, chosen, outcomes)

    summary = directory.summary_md.read_text()
    assert summary.startswith("# failed: sweep nightly\n\n1 valid, 1 invalid, 1 unknown, 1 failed.\n")
    assert "Planted on purpose: `lose-acked:0.05`." in summary
    good, bad = summary.split("## Not valid")
    assert all(cell.labels["faults"] in good for cell in (fine, red, broken, bare)) and "repeat" not in good
    assert fine.labels["faults"] not in bad
    assert "lost-write:12" in bad and f"`.venv/bin/gapless run --seed {red.asked.seed}`" in bad
    assert f"`cells/{red.name}`" in bad and "it ended with 255" in bad

    root = ET.parse(directory.junit_xml).getroot()
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("4", "1", "2")
    # two whose own files say 3.5 s, and one that has none: 4 s by its phases
    assert root.get("time") == "11.000"
    suites = {suite.get("name"): suite for suite in root}
    assert set(suites) == {f"gapless.nightly.{cell.name}" for cell in (fine, red, broken, bare)}
    assert suites[f"gapless.nightly.{red.name}"].find("testcase/failure") is not None
    for cell, says in ((broken, "it ended with 255"), (bare, "junit.xml cannot be read")):
        error = suites[f"gapless.nightly.{cell.name}"].find("testcase/error")
        assert error is not None and says in error.get("message", "")

    assert red_lines(fine, outcomes[fine.name]) == [] == red_lines(fine, CellOutcome("not run"))
    first, repro = red_lines(red, outcomes[red.name])
    assert first.startswith("invalid: ") and "anomalies=lost-write:12 planted=lose-acked:0.05" in first
    assert repro.startswith("repro: .venv/bin/gapless run")
    assert "anomalies=? " in red_lines(bare, outcomes[bare.name])[0]
    assert "anomalies=not judged" in red_lines(broken, outcomes[broken.name])[0]
