"""What is read from finished cells, how it is summed up, and how it ends."""

from __future__ import annotations

import html
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from chaos.commands.main import run_command
from chaos.sweeps.catalogue import find_sweep
from chaos.sweeps.directory import SweepDirectory
from chaos.sweeps.model import Cell, Sweep, Wanted
from chaos.sweeps.outcome import (
    CellOutcome,
    Status,
    has_judgment,
    interrupted,
    is_judged,
    outcome_of,
    sentence,
    shows_what_is_claimed,
)
from chaos.sweeps.report import words, write_reports
from chaos.sweeps.report.plots import matrix, throughputs
from chaos.sweeps.report.table import tables
from chaos.sweeps.summary import MatrixRow, claims_line, exit_status, left_out, ran, rows_of, sweep_json
from tests.chaos.sweeps.finished import finish
from verifier.evidence.run_directory import write_json_atomic

SWEEP: Sweep = find_sweep("delivery")(Wanted(seeds=(1, 2)))


def _cells(**labels: str) -> list[Cell]:
    return [cell for cell in SWEEP.cells if labels.items() <= cell.labels.items()]


LOSING = _cells(acks="1", fault="kill-leader", **{"in-flight": "5"})
SAFE = _cells(acks="all", idempotence="on", fault="reset", **{"in-flight": "5"})


@pytest.fixture
def directory(tmp_path: Path) -> SweepDirectory:
    return SweepDirectory.at(tmp_path / "sweep")


def _outcomes(directory: SweepDirectory) -> dict[str, CellOutcome]:
    return {
        cell.name: CellOutcome("inapplicable")
        if cell.inapplicable
        else outcome_of(directory.run(cell))
        if is_judged(directory.run(cell))
        else CellOutcome("not run")
        for cell in SWEEP.cells
    }


def test_an_outcome_is_what_the_run_left(directory: SweepDirectory) -> None:
    """Counts by effect beside what the settings allow, and throughput over the time of the load alone."""
    finish(directory, LOSING[0], allowed={"lost-write": 9, "inconsistent-offsets": 4}, records_per_s=500)
    outcome = outcome_of(directory.run(LOSING[0]))
    assert (outcome.verdict, outcome.exit_status) == ("valid", 0)
    assert outcome.found == {"lost": 9, "duplicated": 0, "out of order": 0, "unknown": 5}
    assert set(outcome.allowed) == {"lost", "duplicated", "out of order"}
    assert outcome.forbidden == {}
    assert outcome.records_per_s == 500.0
    assert (outcome.faults_injected, outcome.faults_effective) == (3, 2)


def test_what_a_fault_was_ordered_to_lose_is_allowed(directory: SweepDirectory) -> None:
    """The pages show why, as they do for what the settings allow."""
    finish(directory, SAFE[0], allowed={"lost-write": 9})
    run = directory.run(SAFE[0])
    assert "lost" not in outcome_of(run).allowed
    write_json_atomic(run.run_json, {**run.read_run(), "faults_requested": ["elect-unclean"]})
    assert outcome_of(run).allowed["lost"].startswith("elect-unclean ordered an unclean election")


def test_the_line_of_an_invalid_run_names_its_anomalies(directory: SweepDirectory) -> None:
    """Also where none of the effects that a sweep counts was found; an unknown run says why."""
    ended, unknown, allowed = SAFE[0], SAFE[1], LOSING[0]
    finish(directory, ended, verdict="invalid", forbidden={"wrong-end-offset": 2_000}, records_per_s=500)
    finish(directory, unknown, verdict="unknown", records_per_s=500)
    finish(directory, allowed, allowed={"lost-write": 9}, records_per_s=500)
    lines = {cell.name: sentence(outcome_of(directory.run(cell))) for cell in (ended, unknown, allowed)}
    assert lines[ended.name] == "invalid: wrong-end-offset 2,000, 500 records/s"
    assert lines[unknown.name] == "unknown: unknown on purpose, 500 records/s"
    assert lines[allowed.name] == "valid: lost 9, 5 with unknown outcome, 500 records/s"
    finish(directory, LOSING[1], records_per_s=500)
    calm = sentence(outcome_of(directory.run(LOSING[1])))
    assert calm == "valid: nothing lost, duplicated or out of order, 5 with unknown outcome, 500 records/s"
    assert sentence(interrupted(directory.run(ended))).startswith("interrupted: ")


def test_what_was_not_counted_is_no_zero(directory: SweepDirectory) -> None:
    """One seed whose evidence is incomplete leaves a question mark in the row of all, and in the table of cells."""
    finish(directory, LOSING[0], verdict="unknown", counted=False)
    finish(directory, LOSING[1], allowed={"lost-write": 9})
    outcome = outcome_of(directory.run(LOSING[0]))
    assert outcome.found == {"duplicated": 0, "out of order": 0}
    assert (outcome.acked, outcome.read) == (None, None)
    row = next(each for each in rows_of(SWEEP, _outcomes(directory)) if each.judged)
    assert words.figures(row)[1:5] == ["?", "0", "0", "?"]
    write_reports(directory, SWEEP, _outcomes(directory))
    assert ">?</td>" in directory.sweep_html.read_text(encoding="utf-8")


def test_a_run_that_was_interrupted_is_not_judged(directory: SweepDirectory) -> None:
    """Nor is one that has not ended; what it left is kept aside and the cell is run again."""
    first, second = LOSING
    assert not is_judged(directory.run(first))
    finish(directory, first, interrupted=True)
    assert not is_judged(directory.run(first))
    assert directory.set_aside(first) == directory.path / "cells" / f"{first.name}.unfinished-1"
    finish(directory, first, interrupted=True)
    assert directory.set_aside(first) == directory.path / "cells" / f"{first.name}.unfinished-2"
    assert directory.set_aside(second) is None
    finish(directory, second)
    assert is_judged(directory.run(second))


def test_an_interrupted_run_counts_if_it_is_invalid(directory: SweepDirectory) -> None:
    """Not one that is valid or unknown so far, nor one that had a defect to be found: half of it might not do."""
    cell, planted = SAFE[0], replace(SAFE[1], finds=("lost-write",))
    finish(directory, cell, verdict="invalid", forbidden={"lost-write": 2}, interrupted=True)
    finish(directory, planted, verdict="invalid", forbidden={"lost-write": 2}, interrupted=True)
    finish(directory, LOSING[0], verdict="unknown", interrupted=True)
    assert has_judgment(cell, directory.run(cell)) and not is_judged(directory.run(cell))
    assert not has_judgment(planted, directory.run(planted))
    assert not has_judgment(LOSING[0], directory.run(LOSING[0]))


def test_what_a_former_run_was_shrunk_to_is_not_that_of_the_next(directory: SweepDirectory) -> None:
    """It stands aside with its run; else the next one, red or not, would have another run's scenario."""
    finish(directory, LOSING[0])
    directory.shrunk(LOSING[0]).mkdir(parents=True)
    aside = directory.set_aside(LOSING[0])
    assert aside is not None and not directory.shrunk(LOSING[0]).exists()
    assert (directory.path / "shrunk" / aside.name).is_dir()


def test_incomplete_evidence_shows_no_claim(directory: SweepDirectory) -> None:
    """An unknown run that shows nothing neither proves that nothing happens, nor refutes that something does."""
    finish(directory, LOSING[0], verdict="unknown")
    finish(directory, LOSING[1], verdict="unknown", allowed={"lost-write": 3})
    finish(directory, SAFE[0], verdict="unknown")
    shown = [shows_what_is_claimed(cell, outcome_of(directory.run(cell))) for cell in (*LOSING, SAFE[0])]
    assert shown == [None, True, None]


def test_seeds_are_summed_into_one_row(directory: SweepDirectory) -> None:
    """Counts add up, throughput has its extremes, a claim that one seed showed is shown."""
    finish(directory, LOSING[0], allowed={"lost-write": 9}, records_per_s=500)
    finish(directory, LOSING[1], records_per_s=700)
    finish(directory, SAFE[0])
    finish(directory, SAFE[1], verdict="invalid", forbidden={"log-duplicate": 1})
    rows = {tuple(row.labels.values()): row for row in rows_of(SWEEP, _outcomes(directory))}
    losing, safe = rows["1", "off", "5", "kill-leader"], rows["all", "on", "5", "reset"]
    assert (losing.verdict, losing.found["lost"], losing.shown) == ("valid", 9, True)
    assert losing.records_per_s == (500.0, 700.0)
    assert (safe.verdict, safe.verdicts, safe.shown) == ("invalid", ("valid", "invalid"), False)
    assert safe.forbidden == {"log-duplicate": 1}
    assert rows["0", "off", "1", "drop-response"].inapplicable == "with acks=0 there is no response to drop"
    line = claims_line(list(rows.values()))
    assert (
        line.startswith("1 of 2 settings show")
        and "; not so: acks all, idempotence on, in-flight 5, fault reset" in line
    )


def test_where_there_are_only_seeds_each_is_a_row(directory: SweepDirectory) -> None:
    """The sweep ``seeds`` shows every run, and claims nothing."""
    sweep = find_sweep("seeds")(Wanted(seeds=(1, 2, 3)))
    rows = rows_of(sweep, {cell.name: CellOutcome("not run") for cell in sweep.cells})
    assert [row.labels["seed"] for row in rows] == ["1", "2", "3"]
    assert claims_line(rows) == ""


@pytest.mark.parametrize(
    ("statuses", "interrupted", "expected"),
    [
        ((0, 0), False, 0),
        ((0, 2), False, 2),
        ((2, 1, 0), False, 1),
        ((1, 255, 2), False, 255),
        ((0, 254), False, 255),
        ((0, -9), False, 255),
        ((0, None), False, 0),
        ((0,), True, 2),
        ((1,), True, 1),
        ((), False, 0),
    ],
)
def test_the_worst_cell_decides_the_exit_status(
    statuses: tuple[int | None, ...], interrupted: bool, expected: int
) -> None:
    """255, then 1, then 2, then 0; a cell that was refused or killed is a failure of the harness."""
    outcomes = [CellOutcome("judged", exit_status=status) for status in statuses]
    assert exit_status(outcomes, interrupted=interrupted) == expected


@pytest.mark.parametrize(("status", "expected"), [("failed", 255), ("unjudged", 2), ("interrupted", 2)])
@pytest.mark.parametrize("ended", [None, 0, 1, 2, 255])
def test_a_cell_that_was_run_and_has_no_verdict_is_never_green(
    status: Status, expected: int, ended: int | None
) -> None:
    """However its program ended: Python itself ends with 1, which would read as an invalid run."""
    outcomes = [CellOutcome("judged", exit_status=0), CellOutcome(status, exit_status=ended)]
    assert exit_status(outcomes) == expected
    assert exit_status([CellOutcome("judged", exit_status=0), CellOutcome("not run"), CellOutcome("not asked")]) == 0


def test_the_pages_say_the_same(directory: SweepDirectory) -> None:
    """Table, Markdown, HTML and JSON hold each row's counts, what is allowed and whether the claim came true."""
    finish(directory, LOSING[0], allowed={"lost-write": 4321}, records_per_s=1234)
    finish(directory, SAFE[0], verdict="invalid", forbidden={"log-duplicate": 17})
    outcomes = _outcomes(directory)
    write_reports(directory, SWEEP, outcomes)
    page, text = directory.sweep_html.read_text(), directory.sweep_md.read_text()
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(*tables(SWEEP, ran(rows_of(SWEEP, outcomes)), 200))
    for shown in (page, text, console.export_text()):
        for word in ("4,321", "1,234", "kill-leader", "invalid", "out of order", "NO"):
            assert word in shown
    whole = sweep_json(SWEEP, Wanted().to_json(), outcomes, {}, started="x", ended=None)
    assert json.loads(json.dumps(whole)) == whole
    rows = [row for row in whole["rows"] if row["found"]]
    assert [(row["found"]["lost"], row["shown"], row["verdict"]) for row in rows] == [
        (0, False, "invalid"),
        (4321, True, "valid"),
    ]
    assert whole["counts"] == {"valid": 1, "invalid": 1, "not run": len(SWEEP.cells) - 2 - 4}


def test_the_page_needs_nothing_else(directory: SweepDirectory) -> None:
    """No script, no address, no style that its own policy would refuse."""
    finish(directory, LOSING[0], allowed={"lost-write": 3})
    write_reports(directory, SWEEP, _outcomes(directory))
    page = directory.sweep_html.read_text()
    assert "default-src 'none'" in html.unescape(page)
    assert not re.search(r"<script|<link|<img|https?://|\bstyle=", page)


def test_the_plots_lie_inside_their_frames(directory: SweepDirectory) -> None:
    """A place for every setting and fault, a bar for every effect that was found, and room for its figure."""
    finish(directory, LOSING[0], allowed={"lost-write": 10_000_000, "log-duplicate": 1})
    for cell in (*_cells(fault="none", seed="1"), *_cells(fault="slow-link", seed="1")):
        slower = 10 if cell.labels["fault"] == "none" else 1
        finish(directory, cell, records_per_s=100 * slower * int(cell.labels["in-flight"]))
    rows = rows_of(SWEEP, _outcomes(directory))
    plot = matrix(SWEEP, rows)
    # Of reset, drop-response and refuse nothing was run.
    assert [label.text for label in plot.columns] == ["none", "slow-link", "kill-leader"]
    assert len(plot.boxes) == 24
    assert sum(len(box.bars) for box in plot.boxes) == 2 + 1 + 16
    for box in plot.boxes:
        assert box.x >= 0 and box.x + box.width <= plot.width and box.y + box.height <= plot.height
        assert all(box.x < bar.x and bar.x + bar.width < box.x + box.width for bar in box.bars)
    plain, slow = throughputs(SWEEP, rows)
    assert (plain.title, slow.title) == ("Throughput (fault: none)", "Throughput (fault: slow-link)")
    widths = [bar.width for bar in (*plain.bars, *slow.bars)]
    assert len(widths) == 16
    assert widths[1] == pytest.approx(5 * widths[0], rel=0.01) == pytest.approx(50 * widths[8], rel=0.01)
    assert throughputs(SWEEP, rows_of(SWEEP, {cell.name: CellOutcome("not run") for cell in SWEEP.cells})) == []


@pytest.mark.parametrize(("more", "listed"), [("", {"on", "off"}), (",idempotence=on", {"on"})])
def test_a_resumed_sweep_has_the_filter_that_it_began_with(
    directory: SweepDirectory, capsys: pytest.CaptureFixture[str], more: str, listed: set[str]
) -> None:
    """Unless it is given another one."""
    chosen = "acks=all,in-flight=5,fault=reset"
    wanted = Wanted(seeds=(1,), filters=(chosen,))
    sweep = find_sweep("delivery")(wanted)
    whole = sweep_json(sweep, wanted.to_json(), {cell.name: CellOutcome("not run") for cell in sweep.cells}, {})
    directory.sweep_json.write_text(json.dumps(whole))
    other = ["--filter", chosen + more] if more else []
    assert run_command(["sweep", "--resume", str(directory.path), "--list", "--json", *other]) == 0
    cells = json.loads(capsys.readouterr().out).values()
    assert {(each["acks"], each["fault"]) for each in cells} == {("all", "reset")}
    assert {each["idempotence"] for each in cells} == listed


def _shown(rows: list[MatrixRow], width: int) -> list[str]:
    """The lines of the tables in a terminal of ``width`` columns."""
    console = Console(width=width, record=True, file=io.StringIO(), highlight=False)
    for part in tables(SWEEP, rows, width):
        console.print(part)
    return console.export_text().splitlines()


def test_the_table_is_whole_at_80_columns(directory: SweepDirectory) -> None:
    """Settings are one key on one line, no word is cut, and each figure of a wide terminal's table is there."""
    for cell in SWEEP.cells:
        if not cell.inapplicable:
            finish(directory, cell, allowed={"lost-write": 10_563, "log-duplicate": 1_109}, records_per_s=12_345)
    rows = ran(rows_of(SWEEP, _outcomes(directory)))
    narrow, wide = _shown(rows, 80), _shown(rows, 200)
    assert max(map(len, narrow)) <= 80
    assert not any("…" in line for line in narrow)
    for row in rows:
        key = ", ".join(row.labels.values())
        (whole,) = (line for line in wide if line.strip().startswith(f"{key} "))
        parts = " ".join(line for line in narrow if line.strip().startswith(f"{key} "))
        for figure in ("valid", "21,126", "2,218", "10", "12,345", "4/6"):
            assert figure in whole and figure in parts, (key, figure)
    words = " ".join(narrow).split()
    assert {"duplicated", "unknown", "verdict", "records/s", "shown", "bit"} <= set(words)


def test_columns_that_say_nothing_are_left_out(directory: SweepDirectory) -> None:
    """No fault: no ``bit``; no claims: no ``documented``. A zero says something."""
    sweep = find_sweep("seeds")(Wanted(seeds=(1,)))
    finish(directory, sweep.cells[0])
    outcome = replace(outcome_of(directory.run(sweep.cells[0])), faults_injected=0, faults_effective=0)
    rows = rows_of(sweep, {sweep.cells[0].name: outcome})
    headings = [words.HEADINGS[index] for index in words.columns(rows)]
    assert headings == ["verdict", "lost", "duplicated", "out of order", "unknown", "settings allow", "records/s"]


def test_what_was_not_run_does_not_bury_what_was(directory: SweepDirectory) -> None:
    """Tables have the rows that ran, and a line for the others; what was not asked for is on no page."""
    finish(directory, LOSING[0], allowed={"lost-write": 3})
    asked = {cell.name for cell in _cells(acks="1", **{"in-flight": "5"})}
    outcomes = {
        name: outcome if name in asked else CellOutcome("not asked") for name, outcome in _outcomes(directory).items()
    }
    write_reports(directory, SWEEP, outcomes)
    rows = rows_of(SWEEP, outcomes)
    assert [row.labels["fault"] for row in ran(rows)] == ["kill-leader"]
    settings = "; ".join(
        f"1, off, 5, {fault}" for fault in ("none", "slow-link", "drop-response", "reset", "kill-leader", "refuse")
    )
    assert left_out(rows) == [("not run: 6 settings", settings)]
    assert left_out(rows, 1)[0][1] == "1, off, 5, none; and 5 more, see sweep.md"
    for page in (directory.sweep_md.read_text(), directory.sweep_html.read_text()):
        assert "not run: 6 settings" in page
        assert "all, on" not in page and "idempotence on" not in page
        assert page.count("1, off, 5, reset") == 1
    assert len(matrix(SWEEP, rows).boxes) == 1


def test_an_interrupted_cell_says_so(directory: SweepDirectory) -> None:
    """In the table, on the page with a link to what there is, and in the counts; its figures are no result."""
    finish(directory, LOSING[0], verdict="unknown", interrupted=True)
    outcomes = {**_outcomes(directory), LOSING[0].name: interrupted(directory.run(LOSING[0]))}
    write_reports(directory, SWEEP, outcomes)
    (row,) = ran(rows_of(SWEEP, outcomes))
    assert (row.verdict, row.judged, row.shown) == ("interrupted", False, None)
    assert any("interrupted" in line for line in _shown([row], 80))
    page = directory.sweep_html.read_text()
    assert f'<a href="cells/{LOSING[0].name}/report.html">' in page
    assert '<span class="pill unknown">interrupted</span>' in page
    assert "interrupted before its end; --resume runs it again" in directory.sweep_md.read_text()
    assert sweep_json(SWEEP, {}, outcomes, {})["counts"] == {"interrupted": 1, "not run": len(SWEEP.cells) - 1 - 4}
