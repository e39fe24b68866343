"""The sweep of sensitivity: its matrix, its arithmetic, and what its pages say."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.experiment.forms import ScheduleFile
from chaos.experiment.resolve import resolve
from chaos.scenarios.catalogue import find_scenario
from chaos.scenarios.catalogue import names as scenario_names
from chaos.sweeps.catalogue import find_sweep
from chaos.sweeps.directory import SweepDirectory
from chaos.sweeps.exercises import NONE, Planted
from chaos.sweeps.model import Cell, SweepError, Wanted, parse_filter
from chaos.sweeps.outcome import CellOutcome, judged_outcome
from chaos.sweeps.report import write_reports
from chaos.sweeps.report.sensitivity_words import markdown
from chaos.sweeps.sensitivity import CONTROL_S, DEFECTS, EXERCISES, HEALTHY
from chaos.sweeps.sensitivity_document import document, figures_in, main
from chaos.sweeps.sensitivity_figures import Sensitivity, count_of, sensitivity_of
from chaos.sweeps.summary import sweep_json
from cluster.defects import CATALOGUE, parse
from cluster.defects.of_producers import OF_PRODUCERS
from cluster.defects.of_replication import OF_REPLICATION
from cluster.defects.of_storage import OF_STORAGE
from tests.chaos.sweeps.finished import finish
from verifier.anomalies import NAMES
from verifier.evidence.run_directory import append_json_line, write_json_atomic

SWEEP = find_sweep("sensitivity")(Wanted(seeds=(1, 2)))
NOT_ASKED = CellOutcome("not asked")
FOUND = CellOutcome("judged", "invalid", forbidden={"lost-write": 3}, fired=2, evidence_records=40, evidence_s=2.5)


def cells(defect: str, exercise: str) -> list[Cell]:
    wanted = {"exercise": exercise, "defect": defect}
    return [cell for cell in SWEEP.cells if wanted.items() <= cell.labels.items()]


def outcomes(told: Mapping[str, CellOutcome]) -> dict[str, CellOutcome]:
    """Of all cells; those that are not told of were not asked for."""
    return {cell.name: told.get(cell.name, NOT_ASKED) for cell in SWEEP.cells}


def test_every_defect_without_transactions_is_planted() -> None:
    """One that breaks no promise is planted only beside others; 29 of the catalogue are in it."""
    here = {defect.name for defect in (*OF_PRODUCERS, *OF_REPLICATION, *OF_STORAGE)} - {"refuse-batches"}
    assert DEFECTS.keys() == here | {"end-one-later"}
    assert len(DEFECTS) == 29
    assert {each.exercise for each in DEFECTS.values()} == EXERCISES.keys()
    for defect, each in DEFECTS.items():
        assert each.finds and set(each.finds) <= set(NAMES)
        for text in each.texts(defect):
            assert parse(text).name in CATALOGUE
        assert parse(each.texts(defect)[0]).name == defect


def test_each_is_run_beside_the_same_without() -> None:
    """The same settings, faults and seeds, for 20 s at least; and one of the exercises has no faults at all."""
    for defect, entry in DEFECTS.items():
        with_it, without = cells(defect, entry.exercise), cells(NONE, entry.exercise)
        assert len(with_it) == len(without) == 2
        lasting = max(with_it[0].asked.time_limit_s, CONTROL_S)
        same = [replace(cell.asked, defects=(), time_limit_s=lasting) for cell in with_it]
        assert same == [cell.asked for cell in without]
        assert [cell.schedule for cell in with_it] == [cell.schedule for cell in without]
    assert {cell.labels["exercise"] for cell in SWEEP.cells if cell.schedule is None} == {HEALTHY, "in-flight"}


def test_every_cell_can_be_run() -> None:
    """Its settings resolve, and so does its schedule, also where the load is shorter."""
    for cell in (*SWEEP.cells, *find_sweep("sensitivity")(Wanted(time_limit_s=9.0)).cells):
        if cell.schedule is None:
            assert resolve(cell.asked)[0].faults == ()
        else:
            assert cell.schedule.injections
            resolve(replace(cell.asked, schedule=ScheduleFile(Path("s.yaml"), cell.schedule)))


def test_a_named_scenario_is_played_from_its_beginning() -> None:
    """Its settings, and the faults that are over by then: all that follow are later."""
    named = EXERCISES.keys() & set(scenario_names())
    assert named
    for name in named:
        whole = find_scenario(name).schedule.injections
        played = EXERCISES[name].hits
        assert played == whole[: len(played)] and len(played) >= 1
        options = find_scenario(name).options
        assert {key: options[key] for key in EXERCISES[name].options if key in options} == EXERCISES[name].options


def test_what_is_beside_a_defect_is_no_firing(tmp_path: Path) -> None:
    """Only the defect that is to be found counts as exercised."""
    directory, (cell, _) = SweepDirectory.at(tmp_path / "sweep"), cells("take-gaps", "in-flight")
    assert cell.asked.defects == ("take-gaps", "refuse-batches:0.02")
    finish(directory, cell)
    node = directory.run(cell).node(1)
    node.mkdir(parents=True)
    for name in ("refuse-batches", "refuse-batches", "take-gaps"):
        append_json_line(node / "defects.jsonl", {"defect": name})
    outcome = judged_outcome(cell, directory.run(cell))
    assert (outcome.fired, dict(outcome.fired_by)) == (1, {"refuse-batches": 2, "take-gaps": 1})


def test_what_happens_to_topics_of_brokers_is_no_firing(tmp_path: Path) -> None:
    """No check looks at them: a run in which nothing else happened has not exercised the defect."""
    directory, (cell, _) = SweepDirectory.at(tmp_path / "sweep"), cells("lead-alone", "leader-on-its-own")
    finish(directory, cell)
    node = directory.run(cell).node(1)
    node.mkdir(parents=True)
    for topic in ("__consumer_offsets", "__transaction_state"):
        append_json_line(node / "defects.jsonl", {"defect": "lead-alone", "topic": topic, "partition": 0})
    assert judged_outcome(cell, directory.run(cell)).fired == 0
    append_json_line(node / "defects.jsonl", {"defect": "lead-alone", "topic": "gapless", "partition": 0})
    assert judged_outcome(cell, directory.run(cell)).fired == 1


def test_shares_count_runs_in_which_it_fired() -> None:
    """Not exercised is not missed; found by another name is found and not named; records and seconds are medians."""
    lost, swap = cells("lose-acked", HEALTHY), cells("swap-records", HEALTHY)
    late = replace(FOUND, evidence_records=60, evidence_s=3.5)
    told = sensitivity_of(
        SWEEP,
        outcomes(
            {lost[0].name: FOUND, lost[1].name: late, swap[0].name: FOUND, swap[1].name: CellOutcome("judged", "valid")}
        ),
    )
    assert told is not None
    first, second = told["defects"]
    assert (first["defect"], first["exercised"], first["named"]) == ("lose-acked", count_of(2, 2), count_of(2, 2))
    assert (first["records"], first["seconds"], first["anomalies"]) == (50, 3.0, {"lost-write": 6})
    assert (second["exercised"], second["found"], second["named"]) == (count_of(1, 2), count_of(1, 1), count_of(0, 1))
    assert (told["exercised"], told["found"], told["named"]) == (count_of(3, 4), count_of(3, 3), count_of(2, 3))
    assert count_of(2, 2)["most"] == 1.0 and 0.15 < count_of(2, 2)["least"] < 0.16


def test_false_alarms_are_counted_apart() -> None:
    """Of runs without a defect, those without faults and those with; a run that is unknown is neither accused nor
    cleared."""
    healthy, faulty = cells(NONE, HEALTHY), cells(NONE, "lost-responses")
    told = sensitivity_of(
        SWEEP,
        outcomes(
            {
                healthy[0].name: CellOutcome("judged", "valid"),
                healthy[1].name: CellOutcome("judged", "unknown"),
                faulty[0].name: CellOutcome("judged", "invalid", forbidden={"phantom": 1}),
                faulty[1].name: CellOutcome("judged", "valid"),
            }
        ),
    )
    assert told is not None and told["defects"] == []
    assert told["healthy_alarms"] == count_of(0, 1)
    assert told["fault_alarms"] == count_of(1, 2)
    assert told["alarms"] == count_of(1, 3)
    assert [each["unknown"] for each in told["controls"]] == [1, 0]


def test_what_has_no_verdict_is_told() -> None:
    """A crash is neither a false alarm nor its absence, neither found nor missed: the page says how many there are."""
    healthy, lost = cells(NONE, HEALTHY), cells("lose-acked", HEALTHY)
    run = outcomes(
        {
            healthy[0].name: CellOutcome("judged", "valid", commit="aaa"),
            healthy[1].name: CellOutcome("failed", exit_status=255),
            lost[0].name: replace(FOUND, commit="bbb"),
            lost[1].name: CellOutcome("not run"),
        }
    )
    told = sensitivity_of(SWEEP, run)
    assert told is not None and told["alarms"] == count_of(0, 1) and told["exercised"] == count_of(1, 1)
    page = "\n".join(markdown(told))
    assert "Not counted: 2 runs without a verdict (1 failed, 1 not run)." in page
    assert "Note: the runs were made by different commits: aaa (1), bbb (1)." in page
    whole = sensitivity_of(SWEEP, outcomes({healthy[0].name: CellOutcome("judged", "valid")}))
    assert whole is not None and "Not counted" not in "\n".join(markdown(whole))


def test_other_sweeps_have_none() -> None:
    """Nothing is planted there to be found; and where nothing ran, nothing is known."""
    seeds = find_sweep("seeds")(Wanted())
    assert sensitivity_of(seeds, {cell.name: FOUND for cell in seeds.cells}) is None
    assert sensitivity_of(SWEEP, outcomes({})) is None


@pytest.fixture
def told() -> Sensitivity:
    run = {cells("lose-acked", HEALTHY)[0].name: FOUND, cells(NONE, HEALTHY)[0].name: CellOutcome("judged", "valid")}
    figures = sensitivity_of(SWEEP, outcomes(run))
    assert figures is not None
    return figures


def test_the_table(told: Sensitivity) -> None:
    """What was exercised, found and named, with bounds; how soon; and false alarms beside it."""
    page = "\n".join(markdown(told))
    assert "| `lose-acked` | healthy | 1 of 1 | 1 of 1 | 1 of 1 | 2% to 100% | lost-write 3 | 40 | 2.5 |" in page
    assert "| healthy | none | 0 of 1 |  |" in page
    assert "rightly named in 1 of 1: a share of 2% to 100%, with 95% confidence." in page
    assert "at most 97.5%, with 95% confidence." in page


def test_all_pages_have_it(tmp_path: Path) -> None:
    """sweep.json, sweep.md and sweep.html; the page in docs/ is made of the first."""
    directory, [cell, _] = SweepDirectory.at(tmp_path / "sweep"), cells("lose-acked", HEALTHY)
    finish(directory, cell, verdict="invalid", forbidden={"lost-write": 3})
    run = outcomes({cell.name: FOUND})
    write_json_atomic(directory.sweep_json, sweep_json(SWEEP, {}, run, {}))
    write_reports(directory, SWEEP, run)
    figures = figures_in([directory.sweep_json])
    assert figures == json.loads(json.dumps(sensitivity_of(SWEEP, run)))
    for text in (directory.sweep_md.read_text(), document(figures)):
        assert "| `lose-acked` | healthy | 1 of 1 |" in text
    html = directory.sweep_html.read_text()
    assert "<h2>Sensitivity</h2>" in html and 'data-label="true share">2% to 100%<' in html


def test_the_page_in_docs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It names all that is planted, measured or not; what is no sweep of defects is refused."""
    assert main([]) == 0
    page = capsys.readouterr().out
    assert "Not measured yet." in page
    assert all(f"| `{defect}` | `{each.exercise}` |" in page for defect, each in DEFECTS.items())
    # What was measured is of another day; what is planted is of today.
    planted = page.partition("## What is planted")[2]
    assert (Path(__file__).resolve().parents[3] / "docs" / "sensitivity.md").read_text().endswith(planted)
    other = tmp_path / "sweep.json"
    other.write_text("{}")
    assert main([str(other)]) == 254
    assert main([str(tmp_path / "absent.json")]) == 254


def test_a_matrix_that_was_run_in_parts_is_one_table(tmp_path: Path) -> None:
    """Runs of several sweeps are added up as those of one are; a run that is given twice is refused, and one that the
    matrix does not have."""
    planted, healthy = cells("lose-acked", HEALTHY), cells(NONE, HEALTHY)
    slow = CellOutcome("judged", "invalid", fired=9, forbidden={"lost-write": 1}, evidence_records=90, evidence_s=9.5)
    run = {
        planted[0].name: FOUND,
        planted[1].name: slow,
        healthy[0].name: CellOutcome("judged", "valid"),
        healthy[1].name: CellOutcome("judged", "unknown"),
    }
    absent = {cell.name: CellOutcome("not asked") for cell in SWEEP.cells}
    paths = [tmp_path / f"{number}.json" for number in (1, 2)]
    for path, seed in zip(paths, (0, 1), strict=True):
        part = {cell.name: run[cell.name] for cell in (planted[seed], healthy[seed])}
        write_json_atomic(path, sweep_json(SWEEP, {}, absent | part, {}))
    assert figures_in(paths) == sensitivity_of(SWEEP, absent | run)
    with pytest.raises(ValueError, match=r"has the cell exercise-healthy_.*_seed-2, and another file has it too"):
        figures_in([*paths, paths[1]])
    told = json.loads(paths[0].read_text())
    for cell in told["cells"]:
        cell["cell"] += "-of-another-version"
    write_json_atomic(paths[0], told)
    with pytest.raises(ValueError, match=r"has no cell .*-of-another-version now"):
        figures_in(paths)


def test_runs_are_kept_from_day_to_day(tmp_path: Path) -> None:
    """With ``--runs``, what was measured before counts as well; a new run of a cell replaces the one that was kept, and
    one without a verdict replaces nothing. What is kept names no directory of the machine."""
    kept, path = tmp_path / "kept.json", tmp_path / "sweep.json"
    planted = cells("lose-acked", HEALTHY)
    absent = {cell.name: CellOutcome("not asked") for cell in SWEEP.cells}
    missed = CellOutcome("judged", "valid", fired=2, repro=f"{tmp_path}/gapless run")
    days = [{planted[0].name: missed, planted[1].name: FOUND}, {planted[0].name: FOUND}]
    for day in days:
        write_json_atomic(path, sweep_json(SWEEP, {}, absent | day, {}))
        told = figures_in([path], kept)
        assert figures_in([], kept) == told
        assert str(tmp_path) not in kept.read_text()
    assert told == sensitivity_of(SWEEP, absent | days[0] | days[1])
    write_json_atomic(path, sweep_json(SWEEP, {}, absent | {planted[0].name: CellOutcome("failed")}, {}))
    assert figures_in([path], kept) == told
    assert len(kept.read_text().splitlines()) == 2 + 2


def test_a_crash_is_told_by_the_page_that_is_kept_too(tmp_path: Path) -> None:
    """What came to no verdict and was not run again is in the file, and the page says so until it has a verdict."""
    kept, path = tmp_path / "kept.json", tmp_path / "sweep.json"
    one, other = cells(NONE, HEALTHY)
    good, crashed = CellOutcome("judged", "valid"), CellOutcome("failed", exit_status=255)
    write_json_atomic(path, sweep_json(SWEEP, {}, outcomes({one.name: good, other.name: crashed}), {}))
    for given in ([path], []):
        told = figures_in(given, kept)
        assert told is not None and told["without_verdict"] == {"failed": 1} and told["alarms"] == count_of(0, 1)
    write_json_atomic(path, sweep_json(SWEEP, {}, outcomes({other.name: good}), {}))
    told = figures_in([path], kept)
    assert told is not None and told["without_verdict"] == {} and told["alarms"] == count_of(0, 2)


def test_what_was_asked_something_else_is_not_counted(tmp_path: Path) -> None:
    """A sweep with a rate or a time limit of its own has cells of the same names; runs of a second accuse no one. Nor
    is anything counted that an exercise asked before it was changed."""
    other = find_sweep("sensitivity")(Wanted(seeds=(1, 2), time_limit_s=3.0))
    [cell, _] = cells(NONE, HEALTHY)
    path, kept = tmp_path / "sweep.json", tmp_path / "kept.json"
    run = outcomes({cell.name: CellOutcome("judged", "valid")})
    write_json_atomic(path, sweep_json(other, {}, run, {}))
    with pytest.raises(ValueError, match=f"{cell.name} was asked something else"):
        figures_in([path])
    with pytest.raises(ValueError, match=f"{cell.name} was asked something else"):
        figures_in([path], kept)
    assert not kept.exists()
    write_json_atomic(path, sweep_json(SWEEP, {}, run, {}))
    assert figures_in([path], kept) == figures_in([], kept) == figures_in([path])
    told = kept.read_text()
    kept.write_text(re.sub(r'"asks": "[0-9a-f]+"', '"asks": "0123"', told))
    assert kept.read_text() != told
    with pytest.raises(ValueError, match=f"{cell.name} was asked something else"):
        figures_in([], kept)


def test_a_run_is_not_repeated_until_it_is_good(tmp_path: Path) -> None:
    """Of several runs of a cell by the same sources the first counts, unless it is unknown; by others, the newest."""
    kept, path = tmp_path / "kept.json", tmp_path / "sweep.json"
    [cell, _] = cells(NONE, HEALTHY)
    accused = CellOutcome("judged", "invalid", forbidden={"phantom": 1}, commit="aaa")

    def alarms(outcome: CellOutcome) -> object:
        write_json_atomic(path, sweep_json(SWEEP, {}, outcomes({cell.name: outcome}), {}))
        told = figures_in([path], kept)
        assert told is not None
        return told["alarms"], told["controls"][0]["unknown"]

    assert alarms(CellOutcome("judged", "unknown", commit="aaa")) == (count_of(0, 0), 1)
    assert alarms(accused) == (count_of(1, 1), 0)
    assert alarms(CellOutcome("judged", "valid", commit="aaa")) == (count_of(1, 1), 0)
    assert alarms(CellOutcome("judged", "unknown", commit="aaa")) == (count_of(1, 1), 0)
    assert alarms(CellOutcome("judged", "valid", commit="bbb")) == (count_of(0, 1), 0)


def test_a_run_that_is_skipped_is_said_to_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In one line, with its cell, on standard error, which is not the page. What counts is not talked about."""
    kept, path = tmp_path / "kept.json", tmp_path / "sweep.json"
    [one, other] = cells(NONE, HEALTHY)
    accused = CellOutcome("judged", "invalid", forbidden={"phantom": 1}, commit="aaa")

    def told(run: Mapping[str, CellOutcome]) -> str:
        write_json_atomic(path, sweep_json(SWEEP, {}, outcomes(run), {}))
        assert main(["--runs", str(kept), str(path)]) == 0
        return capsys.readouterr().err

    assert told({one.name: accused}) == ""
    valid = CellOutcome("judged", "valid", commit="aaa")
    [line] = told({one.name: valid, other.name: valid}).splitlines()
    assert line.startswith("skipped") and one.name in line and other.name not in line
    assert told({one.name: replace(valid, commit="bbb")}) == ""


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "vaild"},
        {"verdict": "valid", "forbidden": {"phantom": 1}},
        {"verdict": "invalid", "forbidden": {}},
        {"status": "juged"},
    ],
    ids=["no verdict", "accused and valid", "accused of nothing", "no status"],
)
def test_runs_that_contradict_themselves_are_refused(tmp_path: Path, change: Mapping[str, object]) -> None:
    """A run is invalid if and only if something was found that its settings forbid. What is there twice is refused."""
    kept = tmp_path / "kept.json"
    good = json.loads(json.dumps({**sweep_json(SWEEP, {}, outcomes({}), {})}))
    [cell, _] = cells(NONE, HEALTHY)
    [row] = [each for each in good["cells"] if each["cell"] == cell.name]
    row |= CellOutcome("judged", "valid").to_json() | {"reached": {}}
    write_json_atomic(kept, good)
    assert figures_in([], kept) is not None
    write_json_atomic(kept, good | {"cells": [*good["cells"], row]})
    with pytest.raises(ValueError, match=f"has the cell {cell.name} twice"):
        figures_in([], kept)
    row |= change
    write_json_atomic(kept, good)
    with pytest.raises(ValueError, match=cell.name):
        figures_in([], kept)


def test_who_is_accused_before_anything_took_effect_is_told() -> None:
    """The run of a defect that never fired is one without a defect: if it is invalid, no defect was found there."""
    [cell, _] = cells("lose-acked", HEALTHY)
    accused = CellOutcome("judged", "invalid", forbidden={"lost-write": 1})
    told = sensitivity_of(SWEEP, outcomes({cell.name: accused}))
    assert told is not None and told["exercised"] == count_of(0, 1)
    assert "1 run is invalid although its defect never fired" in "\n".join(markdown(told))
    told = sensitivity_of(SWEEP, outcomes({cell.name: CellOutcome("judged", "valid")}))
    assert told is not None and "never fired" not in "\n".join(markdown(told))


def test_the_page_in_docs_is_what_its_runs_tell(tmp_path: Path) -> None:
    """No figure in it is anyone's word: it is made of docs/sensitivity.json."""
    docs = Path(__file__).resolve().parents[3] / "docs"
    copied = tmp_path / "sensitivity.json"
    copied.write_bytes((docs / "sensitivity.json").read_bytes())
    assert (docs / "sensitivity.md").read_text() == document(figures_in([], copied))


def test_a_probability_is_part_of_what_is_planted() -> None:
    """The defect itself is the first of what a run is given."""
    assert Planted("x", (), "0.01", ("b",)).texts("a") == ("a:0.01", "b")
    assert Planted("x", ()).texts("a") == ("a",)


def test_an_exercise_is_still_found_by_the_name_that_it_had() -> None:
    """Filters of before mean the same. A scenario is another sweep's."""
    terms = parse_filter(["scenario=healthy,defect=none"])
    assert SWEEP.filtered(terms) == SWEEP.filtered(parse_filter(["exercise=healthy,defect=none"]))
    assert "scenario" not in SWEEP.dimensions
    with pytest.raises(SweepError, match="dimension"):
        SWEEP.filtered(parse_filter(["scenarios=healthy"]))
