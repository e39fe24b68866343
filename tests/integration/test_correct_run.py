"""``gapless run`` of a correct cluster, from end to end: it is valid, and says of itself all that the verifier reads.

One run for all tests of this file.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints
from xml.etree import ElementTree as ET

import pytest

from chaos.commands.main import run_command
from chaos.experiment.command_line import FIELDS
from chaos.schedules.model import from_yaml
from tests.support.histories import read_histories
from tests.support.leftovers import Place
from tests.support.planted_modules import assert_nothing_executed, plant
from tests.support.require import require
from verifier.evidence.run_model import RunModel, RunSettings

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

#: A machine that does much else may take this long for what needs one minute.
RUN_S = 480.0
FILES = ("verdict.json", "summary.md", "junit.xml", "report.html", "schedule.yaml", "run.json", "run.log")
#: What the run of a correct cluster is asked; what of it the verdict depends on, and the rest as it resolves.
CORRECT = (
    *("--time-limit", "14", "--rate", "150", "--faults", "kill-leader,drop-response", "--seed", "11"),
    *("--load-processes", "2", "--stalled-after", "12", "--producer-config", "retries=500"),
    *("--producer-config", "linger.ms=4", "--topic-config", "flush.messages=1000000"),
    *("--broker-config", "log.retention.bytes=-1", "--keep", "all"),
)
#: As ``repro`` says it: numbers as they were read, and nothing of where the run is kept.
REPRO = CORRECT[:-2]
RESOLVED = {
    "acks": "all",
    "idempotence": True,
    "max_in_flight": 5,
    "retries": 500,
    "client": "confluent",
    "brokers": 3,
    "partitions": 6,
    "replication_factor": 3,
    "unclean_leader_election": False,
    "unknown_producer": "gapless",
    "replica_lag_time_max_ms": 4000,
    "session_timeout_ms": 2000,
    "producer_id_expiration_ms": 86_400_000,
    "rate": 150.0,
    "users": 6,
    "load_processes": 2,
    "readers": ["confluent", "native"],
    "final_readers": ["confluent", "kafka-python"],
    "stalled_after_s": 12.0,
    "target": None,
    "replica_dirs": [],
}


def newest(place: Place) -> Path:
    """The run directory, by its link."""
    latest = place.directory / "results" / "latest"
    runs = [path for path in (place.directory / "results" / "run").iterdir() if path.is_dir()]
    assert [latest.resolve()] == [path.resolve() for path in runs]
    return latest


@pytest.fixture(scope="module")
def correct(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A run of a correct cluster with killed leaders and lost responses, that has ended by itself."""
    require("java")
    odd = tmp_path_factory.mktemp("correct") / "größe, 50% [x]"
    odd.mkdir()
    with Place(odd) as place:
        plant(place.directory)
        status = place.run("run", *CORRECT, timeout_s=RUN_S)
        assert status == 0, place.out + place.err
        place.assert_nothing_left(within_s=1.0)
        yield place


def test_no_process_of_a_run_executes_what_lies_where_it_was_started(correct: Place) -> None:
    """Brokers, proxy, Locust, final readers, verifier, Spark's workers: none imports a module from there."""
    assert_nothing_executed(correct.directory)


def test_a_correct_cluster_is_valid_and_leaves_nothing_but_its_results(correct: Place) -> None:
    """Killed leaders and lost responses: RESULT valid, exit 0, the faults bit, every file there, nothing running."""
    lines = correct.out.splitlines()
    assert lines[0].startswith("RESULT valid seed=11 acked=")
    assert [line.partition(" ")[0] for line in lines] == ["RESULT", "report:", "repro:"]
    assert "--seed 11" in lines[2] and "--faults kill-leader,drop-response" in lines[2]
    run = newest(correct)
    assert all((run / name).stat().st_size > 0 for name in FILES)
    verdict = json.loads((run / "verdict.json").read_text())
    assert (verdict["verdict"], verdict["reasons"]) == ("valid", [])
    assert sum(check["count"] for check in verdict["checks"].values()) == 0
    faults = [json.loads(line) for line in (run / "faults.jsonl").read_text().splitlines()]
    assert {each["fault"] for each in faults if each["phase"] == "heal" and each["effective"]} == {
        "kill-leader",
        "drop-response",
    }
    assert {each.fault for each in from_yaml((run / "schedule.yaml").read_text()).injections} == {
        "kill-leader",
        "drop-response",
    }
    suites = ET.parse(run / "junit.xml").getroot()
    assert suites.findall(".//testcase") and not suites.findall(".//failure")
    record = json.loads((run / "run.json").read_text())
    assert record["exit_status"] == 0 and record["problems"] == []
    _assert_readers(run, verdict["stats"])


def _assert_readers(run: Path, stats: dict[str, Any]) -> None:
    """Two live readers and two final ones of different clients told all that judging them takes."""
    rows = read_histories(run / "history").table.to_pylist()
    readers = {row["process"]: row["phase"] for row in rows if row["f"] == "poll"}
    assert readers == {
        "readers-confluent": "load",
        "readers-native": "load",
        "final-confluent": "final",
        "final-kafka-python": "final",
    }
    for process in readers:
        own = [row for row in rows if row["process"] == process]
        polls = [row for row in own if row["f"] == "poll"]
        assert [row["first_offset"] for row in own if row["f"] == "assign" and row["session"] == 1] == [0] * 6
        assert {row["session"] for row in polls} <= {row["session"] for row in own if row["f"] == "assign"}
        assert all(row["op"] > 0 for row in own if row["f"] != "note")
        assert all(row["high_watermark"] > row["last_offset"] for row in polls if row["high_watermark"] >= 0)
        assert sum(row["high_watermark"] >= 0 for row in polls) > len(polls) // 2
    for process in ("readers-confluent", "readers-native"):
        idle = [row for row in rows if row["process"] == process and row["f"] == "idle"]
        assert idle and all(row["count"] > 0 and row["complete_ns"] >= row["invoke_ns"] for row in idle)
    assert any(row["last_stable_offset"] >= 0 for row in rows if row["process"] == "readers-native")
    lag = stats["read_lag"]
    assert 0 <= lag["p50_ms"] <= lag["p99_ms"] <= lag["worst_ms"] and len(lag["partitions"]) == 6
    assert (stats["live_readers"], stats["final_readers"]) == (2, 2)


def test_a_run_leaves_every_field_that_the_verifier_reads_as_it_was_asked(correct: Place) -> None:
    """The contract of run.json: nothing is absent, however deep; each setting has the value that was asked or resolved;
    what must leave a history is named and has left one; repro asks for the same experiment."""
    run = newest(correct)
    record = json.loads((run / "run.json").read_text())
    assert _absent(RunModel, record) == []
    assert record["settings"] == RESOLVED
    assert set(RESOLVED) == {each.name for each in fields(RunSettings)}
    again = shlex.split(record["repro"])[2:]
    assert sorted(zip(again[::2], again[1::2], strict=True)) == sorted(zip(REPRO[::2], REPRO[1::2], strict=True))
    assert set(record["experiment"]["asked"]) == set(FIELDS)
    assert record["experiment"]["asked"]["producer_config"] == ["retries=500", "linger.ms=4"]
    assert record["experiment"]["resolved"]["producer"]["linger.ms"] == 4
    left = {path.stem for path in (run / "history").iterdir()}
    declared = {process["name"] for process in record["evidence"]["processes"]}
    assert declared == left > {"producers-1", "producers-2", "sentinel", "final-confluent"}
    for name in ("topics", "phases", "children", "final", "faults_requested", "topology"):
        assert record[name], name


@pytest.mark.parametrize("name", [each.name for each in fields(RunSettings)])
def test_a_setting_that_is_missing_is_said_and_not_guessed(
    correct: Place, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """``gapless verify`` of the run without that one setting is unknown, names it, and leaves the verdict that was."""
    run = newest(correct)
    whole = (run / "run.json").read_text()
    record = json.loads(whole)
    del record["settings"][name]
    try:
        (run / "run.json").write_text(json.dumps(record))
        before = (run / "verdict.json").read_bytes()
        assert run_command(["verify", str(run)]) == 2
        assert (run / "verdict.json").read_bytes() == before
    finally:
        (run / "run.json").write_text(whole)
    said = capsys.readouterr()
    assert said.out.startswith("RESULT unknown acked=? read=? anomalies=?")
    assert f"run.json: settings.{name} is absent" in said.err


def test_every_file_of_a_run_is_in_the_table(correct: Place) -> None:
    """results/README.md says of each file that a run leaves what it holds."""
    run = newest(correct)
    files = [path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()]
    assert {"leaders.jsonl", "proxy.log", "verifier.log"} < set(files)
    assert unlisted(files, (ROOT / "results" / "README.md").read_text(encoding="utf-8")) == []


def test_a_file_that_is_not_in_the_table_is_found() -> None:
    """The table's names, directories, placeholders and stars; and no others."""
    page = "| `a.json`, `b.log` | both |\n| `c/*.x` | `not.this` |\n| `d/<broker>/` | all |\n"
    files = ["a.json", "b.log", "c/1.x", "d/3/e/f", "c/1.y", "not.this", "d/zookeeper/f", "a.json.tmp"]
    assert unlisted(files, page) == ["c/1.y", "not.this", "d/zookeeper/f", "a.json.tmp"]


def unlisted(files: Sequence[str], page: str) -> list[str]:
    """The files that no first cell of a row of the page's table names."""
    cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    names = [name.replace("<broker>", "[0-9]") for cell in cells for name in re.findall("`([^`]+)`", cell)]
    return [file for file in files if not any(fnmatchcase(file, f"{n}*" if n.endswith("/") else n) for n in names)]


def _absent(kind: Any, value: Any, where: str = "run.json") -> list[str]:
    """The fields of a dataclass, and of those within it, that ``value`` (from JSON) lacks."""
    if get_origin(kind) in (list, tuple):
        return [each for i, item in enumerate(value) for each in _absent(get_args(kind)[0], item, f"{where}[{i}]")]
    if not is_dataclass(kind):
        return []
    hints, found = get_type_hints(kind), []
    for each in fields(kind):
        place = f"{where}.{each.name}"
        found += _absent(hints[each.name], value[each.name], place) if each.name in value else [place]
    return found
