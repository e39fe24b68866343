"""Runs that someone sent, with a link, or what is no file, where gapless writes or removes: nothing beyond the run is
touched, and nothing in it is lost.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.commands import verifier_process
from chaos.commands.main import run_command
from chaos.sweeps.summary import SCHEMA
from cluster.process.log_files import open_log
from tests.support.stories import clean
from verifier.evidence.outputs import DIRECTORIES, FILES, InTheWay
from verifier.evidence.run_directory import RunDirectory, write_text_atomic
from verifier.replacing import replacing
from verifier.verify_runs import verify

FORMER = '{"verdict": "valid", "checks": {}, "stats": {}, "reasons": []}'


@pytest.fixture(autouse=True)
def no_verifier(monkeypatch: pytest.MonkeyPatch) -> None:
    """What gets as far as a verifier has failed already; it need not start Spark."""
    monkeypatch.setattr(verifier_process, "_command", lambda *_: ["true"])


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A directory of the user's own, with files of the names that a verifier removes."""
    foreign = tmp_path / "home"
    for name in ("evidence/thesis.tex", "spark.log", "jvm.log", "lost-write.csv", "notes"):
        (foreign / name).parent.mkdir(parents=True, exist_ok=True)
        (foreign / name).write_text(name)
    return foreign


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = clean().write(tmp_path / "run")
    run.verdict_json.write_text(FORMER)
    return run


def contents(directory: Path) -> dict[str, str]:
    """Every name below, with what a file holds and where a link leads."""
    found = {}
    for path in sorted(directory.rglob("*")):
        kept = os.readlink(path) if path.is_symlink() else path.read_bytes().hex() if path.is_file() else ""
        found[str(path.relative_to(directory))] = kept
    return found


def put(path: Path, target: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


@pytest.mark.parametrize("name", [*FILES, *DIRECTORIES])
@pytest.mark.parametrize("judge", ["command", "verifier", "files"])
def test_a_link_where_a_result_belongs_is_refused(
    run: RunDirectory, foreign: Path, name: str, judge: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line names it (254), whichever way it comes; what it leads to and the previous verdict are as before."""
    put(run.path / name, foreign / "notes" if name in FILES else foreign)
    before = contents(run.path), contents(foreign)
    if judge == "command":
        assert run_command(["verify", str(run.path)]) == 254
        said = capsys.readouterr().err
        assert f"{run.path / name} is a symbolic link" in said and said.count("\n") == 1
    elif judge == "verifier":
        with pytest.raises(InTheWay, match="is a symbolic link"):
            verify(run)
    else:
        with pytest.raises(InTheWay, match="is a symbolic link"), replacing(run):
            pass
    assert (contents(run.path), contents(foreign)) == before


WRONG: list[Callable[[Path], object]] = [os.mkfifo, Path.mkdir, Path.touch]


@pytest.mark.parametrize("make", WRONG, ids=["pipe", "directory", "file"])
@pytest.mark.parametrize("name", [*FILES, *DIRECTORIES])
def test_what_is_of_another_kind_is_refused(
    run: RunDirectory, name: str, make: Callable[[Path], object], capsys: pytest.CaptureFixture[str]
) -> None:
    """A directory for a file, a file for a directory, a pipe for either."""
    if make is (Path.touch if name in FILES else Path.mkdir):
        return
    (run.path / name).unlink(missing_ok=True)
    make(run.path / name)
    before = contents(run.path)
    assert run_command(["verify", str(run.path)]) == 254
    assert f"{run.path / name} is not a " in capsys.readouterr().err
    assert contents(run.path) == before


def test_no_run_of_several_is_judged_with_a_link_in_one(
    run: RunDirectory, foreign: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As any path is refused with which nothing can be done."""
    other = clean().write(tmp_path / "other")
    put(other.path / "anomalies", foreign)
    before = contents(tmp_path)
    assert run_command(["verify", str(run.path), str(other.path)]) == 254
    assert f"{other.path}/anomalies is a symbolic link" in capsys.readouterr().err
    assert contents(tmp_path) == before


def test_report_refuses_a_link_before_it_judges(
    run: RunDirectory, foreign: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It judges where there is no report yet."""
    put(run.path / ".verifier", foreign)
    before = contents(foreign)
    assert run_command(["report", str(run.path)]) == 254
    assert ".verifier is a symbolic link" in capsys.readouterr().err
    assert contents(foreign) == before


def test_no_log_is_written_through_a_link(tmp_path: Path) -> None:
    """Of no process; nor into a pipe, which might be waited for."""
    victim = tmp_path / "bashrc"
    victim.write_text("mine")
    (tmp_path / "a.log").symlink_to(victim)
    os.mkfifo(tmp_path / "b.log")
    for name in ("a.log", "b.log"):
        with pytest.raises(OSError, match=f"{name} is .*: remove it"):
            open_log(str(tmp_path / name))
    assert victim.read_text() == "mine"
    with open(open_log(str(tmp_path / "new" / "c.log")), "w") as log:
        log.write("said")
    assert (tmp_path / "new" / "c.log").read_text() == "said"


def test_a_previous_verdict_stays_where_its_anomalies_cannot_be_moved(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes when everything else that could be refused was done."""
    run.anomalies_dir.mkdir()

    def refused(path: Path, target: Path) -> Path:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "replace", refused)
    with pytest.raises(PermissionError), replacing(run) as results:
        results.summary_md.touch()
    assert run.verdict_json.read_text() == FORMER and run.anomalies_dir.is_dir()


@pytest.mark.parametrize("name", ["anomalies", "verdict.json", "summary.md", "junit.xml"])
def test_a_history_is_not_judged_into_a_link(
    tmp_path: Path, foreign: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As with a run: the anomalies of a previous verdict would be removed wherever it leads."""
    history, out = tmp_path / "a.jsonl", tmp_path / "out"
    history.write_text('{"process": 0, "type": "invoke", "f": "send", "value": [["send", 1, 2]]}\n')
    out.mkdir()
    (out / name).symlink_to(foreign if name == "anomalies" else foreign / "notes")
    before = contents(foreign), contents(out)
    assert run_command(["verify", "--out", str(out), str(history)]) == 254
    assert f"{out / name} is a symbolic link" in capsys.readouterr().err
    assert (contents(foreign), contents(out)) == before


@pytest.mark.parametrize("name", ["nodes", "nodes/1", "nodes/1/data/t-0/00000000000000000000.log", "up.json"])
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/nowhere")], ids=["pipe", "link"])
def test_no_cluster_is_brought_up_beyond_its_directory(
    tmp_path: Path, name: str, make: Callable[[Path], object], capsys: pytest.CaptureFixture[str]
) -> None:
    """Brokers write, and remove, anywhere in the data that they are given."""
    data = tmp_path / "sent"
    (data / name).parent.mkdir(parents=True)
    make(data / name)
    assert run_command(["up", "--data", str(data)]) == 254
    said = capsys.readouterr().err
    assert f"{data / name} is " in said and "remove it" in said and said.count("\n") == 1


def test_no_sweep_is_continued_beyond_its_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sweep whose cells are a symbolic link is not resumed."""
    (tmp_path / "sweep.json").write_text(json.dumps({"schema": SCHEMA, "sweep": "seeds", "wanted": {}}))
    (tmp_path / "cells").symlink_to("/nowhere")
    assert run_command(["sweep", "--resume", str(tmp_path)]) == 254
    assert f"{tmp_path}/cells is a symbolic link" in capsys.readouterr().err


def test_what_has_the_name_of_a_file_that_is_not_finished_is_replaced(tmp_path: Path) -> None:
    """Its name can be foretold: a link there is not followed."""
    victim = tmp_path / "bashrc"
    victim.write_text("mine")
    (tmp_path / f".a.json.{os.getpid()}.tmp").symlink_to(victim)
    write_text_atomic(tmp_path / "a.json", "{}")
    assert (victim.read_text(), (tmp_path / "a.json").read_text()) == ("mine", "{}")
    assert not (tmp_path / "a.json").is_symlink()
