"""The sweep of defects: what is in its matrix, and when a planted defect counts as fired and as found by its name."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from chaos.experiment.forms import ScheduleFile
from chaos.experiment.resolve import resolve
from chaos.sweeps.catalogue import find_sweep
from chaos.sweeps.defects import DEFECTS, EXERCISES
from chaos.sweeps.directory import SweepDirectory
from chaos.sweeps.exercises import NONE
from chaos.sweeps.model import Cell, Wanted
from chaos.sweeps.outcome import CellOutcome, is_found, judged_outcome
from chaos.sweeps.report import write_reports
from chaos.sweeps.report.words import planted, red_lines
from chaos.sweeps.summary import claims_line, rows_of
from cluster.defects import CATALOGUE
from cluster.defects.of_transactions import OF_TRANSACTIONS
from tests.chaos.sweeps.finished import finish
from tests.simulation.removals import REMOVALS
from verifier.anomalies import NAMES
from verifier.evidence.run_directory import append_json_line

SWEEP = find_sweep("defects")(Wanted(seeds=(1, 2)))
FOUND = "zombie-write"


def cells(defect: str) -> list[Cell]:
    return [cell for cell in SWEEP.cells if cell.labels["exercise"] == "zombies" and cell.labels["defect"] == defect]


def test_each_is_planted_and_is_run_without() -> None:
    """With the same settings, faults and seeds: one run without for all defects of an exercise. The simulation has all
    of them, too."""
    for defect, entry in DEFECTS.items():
        with_it = [cell for cell in SWEEP.cells if cell.labels["defect"] == defect]
        without = [cell for cell in SWEEP.cells if cell.labels["exercise"] == entry.exercise
                   and cell.labels["defect"] == NONE]  # fmt: skip
        assert [(cell.asked.seed, cell.asked.defects, cell.finds) for cell in with_it] == [
            (seed, (defect,), entry.finds) for seed in (1, 2)
        ]
        assert [replace(cell.asked, defects=()) for cell in with_it] == [cell.asked for cell in without]
        assert [cell.schedule for cell in with_it] == [cell.schedule for cell in without]
        assert not any(cell.finds for cell in without)
        assert defect in CATALOGUE and defect in REMOVALS
        assert entry.finds and set(entry.finds) <= set(NAMES)
    assert DEFECTS.keys() == {defect.name for defect in OF_TRANSACTIONS}
    assert {entry.exercise for entry in DEFECTS.values()} == EXERCISES.keys()


def test_the_page_has_each_defect() -> None:
    """What the brokers do with it, under which exercise, and which checks find it: as the code says."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "sweep.md").read_text(encoding="utf-8")
    section = page.partition("\n## defects\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in section.splitlines()]
    told = {
        row[0].strip("`"): (row[1], row[2].strip("`"), set(row[3].split("`")[1::2])) for row in rows if len(row) == 4
    }
    del told["Defect"]
    assert told == {name: (CATALOGUE[name].doc, entry.exercise, set(entry.finds)) for name, entry in DEFECTS.items()}


def test_every_exercise_can_be_run() -> None:
    """Its settings resolve, and so does its schedule, also where the load is shorter."""
    for cell in (*SWEEP.cells, *find_sweep("defects")(Wanted(time_limit_s=4.5)).cells):
        if cell.schedule is None:
            assert resolve(cell.asked)[0].faults == ()
        else:
            assert cell.schedule.injections
            resolve(replace(cell.asked, schedule=ScheduleFile(Path("s.yaml"), cell.schedule)))


@pytest.mark.parametrize(
    ("forbidden", "firings", "told", "status"),
    [
        ({FOUND: 3}, 2, True, 0),
        ({"lost-write": 3}, 2, False, 1),
        ({}, 2, False, 1),
        ({}, 0, None, 2),
        ({FOUND: 3}, 0, None, 2),
    ],
    ids=["found", "by another name", "missed", "never fired", "found without it"],
)
def test_what_was_planted_is_to_be_found_by_its_name(
    tmp_path: Path, forbidden: Mapping[str, int], firings: int, told: bool | None, status: int
) -> None:
    """All is well if it was; it was missed if it fired and was not; nothing can be said if it never fired."""
    directory, (cell, _) = SweepDirectory.at(tmp_path / "sweep"), cells("take-fenced-producers")
    outcome = left(directory, cell, forbidden, firings)
    assert (outcome.fired, is_found(cell, outcome), outcome.exit_status) == (firings, told, status)


def test_without_a_defect_the_verdict_counts(tmp_path: Path) -> None:
    """A control run that is invalid is as bad as any other."""
    directory, (cell, _) = SweepDirectory.at(tmp_path / "sweep"), cells(NONE)
    outcome = left(directory, cell, {FOUND: 1}, 0)
    assert (is_found(cell, outcome), outcome.exit_status) == (None, 1)
    [row] = rows_of(SWEEP, {each.name: outcome if each is cell else NOT_ASKED for each in SWEEP.cells})
    assert planted(row) == ("", "", "")


def test_runs_of_a_defect_are_counted(tmp_path: Path) -> None:
    """In how many it fired, and in how many of these it was found, as what."""
    directory, (first, second) = SweepDirectory.at(tmp_path / "sweep"), cells("take-fenced-producers")
    outcomes = {each.name: NOT_ASKED for each in SWEEP.cells}
    outcomes[first.name] = left(directory, first, {FOUND: 3, "lost-write": 1}, 2)
    outcomes[second.name] = left(directory, second, {}, 0)
    rows = rows_of(SWEEP, outcomes)
    assert [planted(row) for row in rows] == [("1/2", "1/1", f"{FOUND} 3")]
    assert claims_line(rows) == "planted defects fired in 1 of 2 runs, and were found by their names in 1 of these"


NOT_ASKED = CellOutcome("not asked")


def left(directory: SweepDirectory, cell: Cell, forbidden: Mapping[str, int], firings: int) -> CellOutcome:
    """What a finished run left, and what comes of it."""
    finish(directory, cell, verdict="invalid" if forbidden else "valid", forbidden=forbidden)
    node = directory.run(cell).node(1)
    node.mkdir(parents=True)
    for _ in range(firings):
        append_json_line(node / "defects.jsonl", {"defect": "take-fenced-producers"})
    return judged_outcome(cell, directory.run(cell))


def test_a_defect_that_was_missed_is_no_green_page(tmp_path: Path) -> None:
    """summary.md, junit.xml and the terminal say what the exit status says: found is well, missed is red, and what
    never fired is unknown. A run without a defect is judged as any other."""
    directory, (first, second) = SweepDirectory.at(tmp_path / "sweep"), cells("take-fenced-producers")
    (healthy, _) = cells(NONE)
    outcomes = {each.name: NOT_ASKED for each in SWEEP.cells}
    outcomes[healthy.name] = left(directory, healthy, {}, 0)

    def pages() -> tuple[str, list[str], list[str], ET.Element]:
        write_reports(directory, SWEEP, outcomes)
        whole = directory.summary_md.read_text()
        said = [line for cell in (healthy, first, second) for line in red_lines(cell, outcomes[cell.name])]
        return whole.splitlines()[0], whole.splitlines(), said, ET.parse(directory.junit_xml).getroot()

    outcomes[first.name] = left(directory, first, {FOUND: 3}, 2)
    head, lines, said, junit = pages()
    assert head == "# valid: sweep defects" and said == []
    assert not any(line.startswith("## Not valid") for line in lines)
    assert (junit.get("failures"), junit.get("errors")) == ("0", "0")

    outcomes[second.name] = left(directory, second, {}, 0)
    head, lines, said, junit = pages()
    assert head == "# unknown: sweep defects"
    assert said[0].startswith("never fired: ") and any(line.startswith("- **never fired**: ") for line in lines)
    assert (junit.get("failures"), junit.get("errors")) == ("0", "1")

    shutil.rmtree(directory.run(second).path)
    outcomes[second.name] = left(directory, second, {}, 2)
    head, lines, said, junit = pages()
    assert head == "# invalid: sweep defects"
    assert said[0].startswith("missed: ") and any(line.startswith("- **missed**: ") for line in lines)
    assert (junit.get("failures"), junit.get("errors")) == ("1", "0")
