"""A sweep adds up what its runs reached, and names those that reached something first."""

from __future__ import annotations

import json
from pathlib import Path

from chaos.experiment.asked import Asked
from chaos.reached import REACHED_FILE, Reached
from chaos.sweeps.directory import SweepDirectory
from chaos.sweeps.model import Cell, Sweep
from chaos.sweeps.outcome import CellOutcome, outcome_of
from chaos.sweeps.reach import kept, together
from chaos.sweeps.report import write_reports
from chaos.sweeps.summary import sweep_json
from tests.chaos.sweeps.finished import finish
from verifier.evidence.run_directory import write_json_atomic

CELLS = tuple(Cell({"client": "native", "seed": str(seed)}, Asked(seed=seed, name="s")) for seed in (1, 2, 3, 4))
SWEEP = Sweep("s", "a sweep", "seed", CELLS)
REACHED = {
    1: Reached(isr_sizes={"3": 6}, truncations={"1-9": 2}, truncated={"t-0": 2}),
    2: Reached(isr_sizes={"3": 5}, truncations={"1-9": 1}, truncated={"t-1": 1}),
    3: Reached(isr_sizes={"2": 1, "3": 6}, controllers=2),
}


def _outcomes(directory: SweepDirectory) -> dict[str, CellOutcome]:
    """Three runs that came to a verdict and a fourth that was not run."""
    found = {}
    for cell in CELLS:
        reached = REACHED.get(cell.asked.seed)
        if reached is None:
            found[cell.name] = CellOutcome("not run")
            continue
        finish(directory, cell)
        write_json_atomic(directory.run(cell).path / REACHED_FILE, reached.to_json())
        found[cell.name] = outcome_of(directory.run(cell))
    return found


def test_seeds_that_reach_something_new_are_kept(tmp_path: Path) -> None:
    """The first has all that it reached, a later one what no earlier one had; the second one has nothing new."""
    outcomes = _outcomes(SweepDirectory.at(tmp_path / "sweep"))
    assert [outcome.reached for outcome in outcomes.values()] == [*REACHED.values(), Reached()]
    first, third = kept(SWEEP, outcomes)
    assert (first.seed, third.seed) == (1, 3)
    assert first.new == (
        "ISR size 3",
        "partitions that were truncated: 1 or more",
        "truncations of 1-9 records: 2 or more",
    )
    assert third.new == ("ISR size 2", "controllers: 2 or more")
    assert third.repro == ".venv/bin/gapless run --seed 3"


def test_the_pages_and_sweep_json_say_what_was_reached(tmp_path: Path) -> None:
    """Together and, for each run that is kept, what it was the first to reach."""
    directory = SweepDirectory.at(tmp_path / "sweep")
    outcomes = _outcomes(directory)
    assert together(SWEEP, outcomes).truncations == {"1-9": 3}
    whole = json.loads(json.dumps(sweep_json(SWEEP, {}, outcomes, {})))
    assert Reached.from_json(whole["reached"]) == together(SWEEP, outcomes)
    assert [each["seed"] for each in whole["kept"]] == [1, 3]
    assert Reached.from_json(whole["cells"][0]["reached"]) == REACHED[1]
    write_reports(directory, SWEEP, outcomes)
    summary = directory.summary_md.read_text()
    assert "## Reached" in summary and "`client-native_seed-3` was the first with: ISR size 2" in summary
    assert "- truncations: 3 in 2 partitions (1-9 records 3)" in directory.sweep_md.read_text()
    page = directory.sweep_html.read_text()
    assert "client-native_seed-3</span> was the first with: ISR size 2" in page and "<h2>Reached</h2>" in page


def test_a_run_of_another_version_reached_nothing(tmp_path: Path) -> None:
    """It has no such file: the sweep goes on without it, and its pages have no empty table."""
    directory = SweepDirectory.at(tmp_path / "sweep")
    finish(directory, CELLS[0])
    outcomes = {cell.name: CellOutcome("not run") for cell in CELLS}
    outcomes[CELLS[0].name] = outcome_of(directory.run(CELLS[0]))
    assert kept(SWEEP, outcomes) == [] and together(SWEEP, outcomes) == Reached()
    write_reports(directory, SWEEP, outcomes)
    assert "Reached" not in directory.summary_md.read_text() + directory.sweep_html.read_text()
