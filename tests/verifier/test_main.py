"""The whole verifier in a process of its own, from a run directory to its four files."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree as ET

import psutil
import pytest

from tests.support.stories import SECOND, Story, clean
from tests.verifier.planted.changes import append_copy, lose_acked
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
#: A directory name of which Java's properties, log4j, Hadoop and Spark would each misread something.
ODD = 'größe, 50% [x] $HOME "q"'


def start(run_directory: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-m", "verifier.main", str(run_directory)]
    return subprocess.Popen(argv, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def faulty_story() -> Story:
    """A run that lost a batch in one partition and stored one twice in the other."""
    story = clean(partitions=1, streams=2)
    lose_acked(story)
    append_copy(story)
    story.faults_requested = ["kill-leader"]
    for phase, at in (("inject", 12), ("heal", 15)):
        story.faults.append(
            {
                "number": 0, "fault": "kill-leader", "target": "b1", "phase": phase, "start_ns": at * SECOND,
                "end_ns": (at + 1) * SECOND, "probe": {"running": phase == "heal"}, "effective": True,
                "healed": phase == "heal",
            }
        )  # fmt: skip
    return story


@dataclass(frozen=True)
class Several:
    """A job that judged ``one`` (faulty) and ``two`` (clean), and could not judge ``broken``, which stood between."""

    one: RunDirectory
    broken: RunDirectory
    two: RunDirectory
    before: set[str]  # the names in ``one``
    outcomes: Path
    done: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Several:
    """One job of three runs, for a job costs half a minute. Their directory has a name that Java would misread."""
    home = tmp_path_factory.mktemp("several") / ODD
    home.mkdir()
    one, two = faulty_story().write(home / "one"), clean().write(home / "two")
    broken = RunDirectory(home / "broken")
    broken.path.mkdir()
    broken.run_json.write_text("{}")
    before, outcomes = {path.name for path in one.path.iterdir()}, home / "outcomes.jsonl"
    unset = ("LANG", "LC_ALL", "LC_CTYPE")
    environment = {name: value for name, value in os.environ.items() if name not in unset} | {"PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-m", "verifier.main", *(str(each.path) for each in (one, broken, two))]
    done = subprocess.run(
        [*argv, "--outcomes", str(outcomes)], env=environment, text=True, capture_output=True, check=False, timeout=500
    )
    return Several(one, broken, two, before, outcomes, done)


def test_a_run_directory_is_judged_and_reported(several: Several) -> None:
    """All files appear and tell the same; stdout stays empty; nothing else is left."""
    directory, log = several.one, several.done.stderr
    assert several.done.stdout == "", log
    assert "Warning" not in log
    assert "verdict: invalid" in log
    verdict = json.loads(directory.verdict_json.read_text())
    assert verdict["verdict"] == "invalid"
    assert {name: check["count"] for name, check in verdict["checks"].items() if check["count"]} == {
        "lost-write": 3, "duplicate": 3, "log-duplicate": 3, "inconsistent-offsets": 3, "log-gap": 1,
        "sequence-gap": 2, "sequence-duplicate": 1,
    }  # fmt: skip
    assert [reason.split(":")[0] for reason in verdict["reasons"]] == ["lost-write", "duplicate"]
    suite = ET.fromstring(directory.junit_xml.read_text())
    assert {case.get("name") for case in suite if case.find("failure") is not None} == {
        "lost-write", "duplicate", "log-duplicate", "inconsistent-offsets", "log-gap",
        "sequence-gap", "sequence-duplicate",
    }  # fmt: skip
    assert "lost-write" in directory.summary_md.read_text()
    assert "s1/3" in directory.report_html.read_text()
    assert [path.name for path in directory.path.parent.parent.iterdir()] == [ODD], "a second directory was made"
    added = {path.name for path in directory.path.iterdir()} - several.before
    assert added == {"verdict.json", "summary.md", "junit.xml", "report.html", "anomalies"}
    with (directory.anomalies_dir / "lost-write.csv").open(newline="") as file:
        assert [row["sequence"] for row in csv.DictReader(file)] == ["3", "4", "5"]


def test_several_runs_share_a_session(several: Several) -> None:
    """One JVM judges all; a run that cannot be judged takes no other along; what became of each is written down."""
    done, runs = several.done, (several.one, several.broken, several.two)
    assert (done.returncode, done.stdout) == (255, ""), done.stderr
    assert done.stderr.count("Spark 4") == 1
    assert "no verdict for 1 of 3 runs" in done.stderr.splitlines()[-1]
    told = [json.loads(line) for line in several.outcomes.read_text().splitlines()]
    assert [each["run"] for each in told] == [str(each.path) for each in runs]
    assert [each["error"] is None for each in told] == [True, False, True]
    assert json.loads(several.one.verdict_json.read_text())["verdict"] == "invalid"
    assert several.two.verdict_json.exists()
    assert not several.broken.verdict_json.exists()
    assert not [each for each in runs if (each.path / ".verifier").exists()]


def test_a_job_that_is_ended_leaves_no_jvm(tmp_path: Path) -> None:
    """SIGTERM while Spark runs: the JVM goes with it, and the scratch directory too. The former verdict stays."""
    directory = clean().write(tmp_path / "run")
    directory.verdict_json.write_text('{"verdict": "valid"}')
    job = start(directory.path)
    assert job.stderr is not None
    for line in job.stderr:
        if "Spark 4" in line:
            break
    children = psutil.Process(job.pid).children(recursive=True)
    assert any("java" in child.name() for child in children)
    job.send_signal(signal.SIGTERM)
    _, log = job.communicate(timeout=60)
    assert job.returncode == 255
    assert f"what is left in {directory.path} is the previous verdict: valid" in log
    gone, alive = psutil.wait_procs(children, timeout=20)
    assert not alive, gone
    assert directory.verdict_json.read_text() == '{"verdict": "valid"}'
    assert not (directory.path / ".verifier").exists()


def test_a_job_without_a_run_says_so(tmp_path: Path) -> None:
    """No run.json: one line, status 255, before Spark is started."""
    job = start(tmp_path)
    out, log = job.communicate(timeout=60)
    assert (job.returncode, out) == (255, "")
    assert "no verdict" in log.splitlines()[-1]
    assert "run.json" in log.splitlines()[-1]


def test_a_run_that_lacks_a_setting_is_not_judged(tmp_path: Path) -> None:
    """What the verdict depends on is never guessed: status 255 and the field's name, before Spark is started."""
    directory = clean().write(tmp_path / "run")
    record = directory.read_run()
    del record["settings"]["acks"]
    directory.run_json.write_text(json.dumps(record))
    job = start(directory.path)
    out, log = job.communicate(timeout=60)
    assert (job.returncode, out) == (255, "")
    assert log.splitlines()[-1].endswith("no verdict: run.json: settings.acks is absent")
    assert not directory.verdict_json.exists()


def test_a_run_without_evidence_is_unknown(tmp_path: Path) -> None:
    """Neither segments nor histories: that is a verdict, and needs no Spark."""
    story = clean()
    directory = story.write(tmp_path / "run")
    for path in [*directory.history_dir.iterdir(), *directory.nodes_dir.rglob("*.log")]:
        path.unlink()
    model = RunModel.from_json(directory.read_run())
    directory.run_json.write_text(json.dumps(replace(model, interrupted=True).to_json()))
    job = start(directory.path)
    _, log = job.communicate(timeout=60)
    assert job.returncode == 0, log
    verdict = json.loads(directory.verdict_json.read_text())
    assert (verdict["verdict"], verdict["reasons"]) == (
        "unknown", ["the run left neither segments nor histories", "the run was interrupted"],
    )  # fmt: skip
