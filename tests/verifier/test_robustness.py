"""A verifier that is killed, or whose Spark is: nothing is left that looks like a verdict, and it can be run again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.verifier.test_main import ROOT, faulty_story, start
from verifier.evidence.outputs import BESIDE, SCRATCH
from verifier.evidence.run_directory import RunDirectory
from verifier.spark.class_archive import ClassArchive
from verifier.verify_runs import verify

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

Victim = Callable[[subprocess.Popen[str]], psutil.Process]


def itself(job: subprocess.Popen[str]) -> psutil.Process:
    return psutil.Process(job.pid)


def jvm(job: subprocess.Popen[str]) -> psutil.Process:
    return next(each for each in psutil.Process(job.pid).children() if each.name() == "java")


def killed_at(directory: RunDirectory, moment: str, victim: Victim) -> tuple[int, str]:
    """Kill the victim of a verifier that is so far; its exit status and the rest of its log, once all of it is gone."""
    job = start(directory.path)
    assert job.stderr is not None
    assert any(moment in line for line in job.stderr), f"it never came to {moment!r}"
    family = psutil.Process(job.pid).children(recursive=True)
    victim(job).send_signal(signal.SIGKILL)
    _, log = job.communicate(timeout=120)
    _, alive = psutil.wait_procs(family, timeout=60)
    assert not alive
    return job.returncode, log


@pytest.mark.full
def test_a_verifier_that_was_killed_is_run_again(tmp_path: Path) -> None:
    """Killed early, killed late, its JVM killed: the previous verdict stays, and is called that by whoever can speak.

    Then the same as if nothing had been, and nothing left.
    """
    untouched, directory = (faulty_story().write(tmp_path / name) for name in ("untouched", "run"))
    present = {path.name for path in directory.path.iterdir()}
    directory.verdict_json.write_text('{"verdict": "valid"}')
    assert killed_at(directory, "starting Spark", itself)[0] == -signal.SIGKILL
    assert directory.verdict_json.read_text() == '{"verdict": "valid"}'
    assert killed_at(directory, "asking", itself)[0] == -signal.SIGKILL
    assert (directory.path / SCRATCH).exists()
    status, log = killed_at(directory, "asking", jvm)
    assert status == 255
    assert log.splitlines()[-1].endswith("no verdict: Spark's JVM was killed by signal 9")
    assert f"what is left in {directory.path} is the previous verdict: valid" in log
    assert {path.name for path in directory.path.iterdir()} == {*present, "verdict.json"}
    verdicts = []
    for each in (directory, untouched):
        job = start(each.path)
        _, log = job.communicate(timeout=500)
        assert job.returncode == 0, log
        verdicts.append(json.loads(each.verdict_json.read_text()))
    assert verdicts[0] == verdicts[1]
    assert verdicts[0]["verdict"] == "invalid"
    assert not (directory.path / SCRATCH).exists()


def test_what_a_dead_verifier_left_is_removed_first(tmp_path: Path) -> None:
    """Its scratch and its unfinished files go before anything can fail; a former verdict stays, with its files."""
    directory = faulty_story().write(tmp_path)
    (directory.path / SCRATCH / "evidence").mkdir(parents=True)
    (directory.path / BESIDE).mkdir()
    for path in (directory.verdict_json, directory.report_html, directory.path / BESIDE / "report.html"):
        path.touch()
    directory.run_json.write_text("no JSON")
    with pytest.raises(ValueError, match="Expecting value"):
        verify(directory)
    assert {path.name for path in directory.path.iterdir()} == {
        "run.json", "seal.json", "faults.jsonl", "leaders.jsonl", "history", "nodes", "loadgen", "verdict.json",
        "report.html",
    }  # fmt: skip


#: A process of its own: pyspark knows one JVM a process, and a test beside this one may have it.
FILL_THE_HEAP = """
import sys
from pathlib import Path
from verifier.spark import session as sessions

try:
    with sessions.session(Path(sys.argv[1])) as session:
        gateway = session.spark.sparkContext._gateway
        gateway.new_array(gateway.jvm.long, 1 << 30)
except sessions.SparkLost as lost:
    print(lost)
"""


@pytest.mark.full
def test_a_jvm_without_memory_is_told_as_that(tmp_path: Path) -> None:
    """It ends at once instead of going on without what it could not do; the line has the size of its heap."""
    assert in_a_process(FILL_THE_HEAP, tmp_path) == "Spark's JVM ran out of memory (status 3, heap 1g)\n"


def in_a_process(script: str, *arguments: object) -> str:
    """What a script prints that starts a JVM."""
    argv = [sys.executable, "-c", script, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(argv, env=environment, text=True, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.full
def test_the_archive_of_classes_is_never_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged one is not used; what a dead verifier was writing is removed; where none can be kept there is none."""
    monkeypatch.setattr("verifier.spark.class_archive._directories", lambda: [tmp_path])
    archive = ClassArchive.of("/usr", tmp_path)
    assert archive.path is not None
    assert archive.use() == []
    left = archive.path.with_name(archive.path.name + ".999999999")
    left.touch()
    making = archive.make()
    assert making is not None and not left.exists()
    making.fresh.write_bytes(b"half")
    making.finish(whole=False)
    assert list(tmp_path.iterdir()) == []
    making.fresh.write_bytes(b"whole")
    making.finish(whole=True)
    assert archive.use()[-1] == f"-XX:SharedArchiveFile={archive.path}"
    assert archive.make() is None
    monkeypatch.setattr("verifier.spark.class_archive._directories", list)
    assert ClassArchive.of("/usr", tmp_path) == ClassArchive(None)
    assert (ClassArchive(None).use(), ClassArchive(None).make()) == ([], None)


#: With an archive of classes that is none.
COUNT = """
import sys
from pathlib import Path
from verifier.spark import session as sessions
from verifier.spark.class_archive import ClassArchive

sessions._classes = lambda _: ClassArchive(Path(sys.argv[1]))
with sessions.session(Path(sys.argv[2])) as session:
    print(session.spark.range(3).count())
"""


@pytest.mark.full
def test_java_starts_with_a_damaged_archive(tmp_path: Path) -> None:
    """The JVM looks at the file's head, and goes without one that is none."""
    damaged = tmp_path / "damaged.jsa"
    damaged.write_bytes(b"no archive" * 1000)
    assert in_a_process(COUNT, damaged, tmp_path / "scratch") == "3\n"
