"""A run directory has the names of docs/verifier.md, and its whole files appear in one step."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from verifier.evidence.run_directory import (
    RunDirectory,
    append_json_line,
    read_json,
    read_json_lines,
    update_latest,
    write_json_atomic,
)

NOW = datetime(2024, 1, 31, 23, 59, 58, tzinfo=UTC)


def test_name_is_utc_time_and_seed(tmp_path: Path) -> None:
    """results/<name>/<UTC time>-s<seed>, whatever the zone of the time given; a taken name gets -2, -3."""
    here = NOW.astimezone(timezone(timedelta(hours=5)))
    names = [RunDirectory.create(tmp_path, "default", 42, here).path.relative_to(tmp_path) for _ in range(3)]
    stem = Path("default") / "20240131T235958Z-s42"
    assert names == [stem, Path(f"{stem}-2"), Path(f"{stem}-3")]


def test_files_have_the_contracts_names(tmp_path: Path) -> None:
    """The names that other programs rely on."""
    run = RunDirectory(tmp_path)
    paths = (run.run_json, run.schedule_yaml, run.faults_jsonl, run.history_dir, run.nodes_dir, run.node(2),
             run.loadgen_dir, run.verdict_json, run.report_html, run.summary_md, run.junit_xml, run.run_log,
             run.history("producers"), run.status_json("readers"), run.series_jsonl("readers"))  # fmt: skip
    assert [str(path.relative_to(tmp_path)) for path in paths] == [
        "run.json", "schedule.yaml", "faults.jsonl", "history", "nodes", "nodes/2", "loadgen", "verdict.json",
        "report.html", "summary.md", "junit.xml", "run.log", "history/producers.arrow",
        "loadgen/readers.status.json", "loadgen/readers.series.jsonl",
    ]  # fmt: skip


def test_a_directory_that_was_asked_for_must_be_empty(tmp_path: Path) -> None:
    """--out DIR is the run directory itself; evidence of two runs never mixes."""
    run = RunDirectory.at(tmp_path / "mine")
    assert run.history_dir.is_dir() and run.nodes_dir.is_dir() and run.loadgen_dir.is_dir()
    with pytest.raises(FileExistsError, match="not empty"):
        RunDirectory.at(tmp_path / "mine")


def test_latest_is_a_relative_link_to_the_newest(tmp_path: Path) -> None:
    """results/latest moves from run to run and survives a moved results directory."""
    for seed in (1, 2):
        run = RunDirectory.create(tmp_path / "results", "default", seed, NOW)
        link = update_latest(run, tmp_path / "results")
        assert link.resolve() == run.path.resolve()
        assert not os.path.isabs(link.readlink())
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["default", "latest"]


def test_json_is_written_whole_and_strict(tmp_path: Path) -> None:
    """A value that is no JSON leaves the former file as it was and nothing beside it."""
    path = tmp_path / "run.json"
    write_json_atomic(path, {"a": "ü"})
    for bad in (float("nan"), object()):
        with pytest.raises((ValueError, TypeError)):
            write_json_atomic(path, {"a": bad})
    assert read_json(path) == {"a": "ü"}
    assert [each.name for each in tmp_path.iterdir()] == ["run.json"]


def test_an_unfinished_last_line_is_left_out(tmp_path: Path) -> None:
    """JSON lines of a killed writer: the lines with an end count, also if they hold odd separators."""
    path = tmp_path / "faults.jsonl"
    assert list(read_json_lines(path)) == []
    append_json_line(path, {"fault": "a\u2028b"})
    with path.open("a") as file:
        file.write('{"fault": "half')
    assert RunDirectory(tmp_path).read_faults() == [{"fault": "a\u2028b"}]
    path.write_text("[]\n")
    with pytest.raises(ValueError, match=":1: expected a JSON object"):
        list(read_json_lines(path))


def test_what_is_no_object_is_refused(tmp_path: Path) -> None:
    """A run.json that is not one JSON object is refused."""
    run = RunDirectory(tmp_path)
    run.run_json.write_text("3")
    with pytest.raises(ValueError, match="expected a JSON object"):
        run.read_run()


def test_broker_ids(tmp_path: Path) -> None:
    """Only numbered directories under nodes/ are brokers."""
    run = RunDirectory(tmp_path)
    assert run.broker_ids() == []
    run.prepare()
    for name in ("10", "2", "zookeeper"):
        (run.nodes_dir / name).mkdir()
    (run.nodes_dir / "7").write_text("")
    assert run.broker_ids() == [2, 10]


@pytest.mark.parametrize("number", ["1" + "0" * 30, "-9223372036854775809", "1e999", "-1e19", "NaN", "Infinity"])
def test_a_number_that_no_reader_can_hold_is_no_evidence(tmp_path: Path, number: str) -> None:
    """It is refused where it is read: what takes it for 64 bits would raise, and so tell of no damage at all."""
    path = tmp_path / "x.jsonl"
    path.write_text(f'{{"start_ns": {number}}}\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"beyond 64 bits|no JSON"):
        list(read_json_lines(path))


def test_the_largest_number_of_64_bits_is_read(tmp_path: Path) -> None:
    """Both ends of the range are still evidence."""
    path = tmp_path / "x.jsonl"
    entry = {"flush_messages": 2**63 - 1, "least": -(2**63), "rate": 0.5}
    append_json_line(path, entry)
    assert list(read_json_lines(path)) == [entry]


def test_a_run_may_have_a_seed_of_any_size(tmp_path: Path) -> None:
    """No table holds a seed: it may be larger than 64 bits."""
    path = tmp_path / "run.json"
    write_json_atomic(path, {"seed": 10**30})
    assert read_json(path) == {"seed": 10**30}
