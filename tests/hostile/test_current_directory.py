"""Whoever runs a command where somebody else's files lie runs none of them. (A whole run and ``up`` are in
``tests/integration``: their clusters start in such a directory.)"""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path

import pytest

from cluster.process.supervisor import Supervisor
from tests.support.leftovers import Place
from tests.support.planted_modules import assert_nothing_executed, plant
from tests.support.stories import clean
from tests.verifier.operations.histories import Line
from tests.verifier.operations.planted import history
from verifier.operations.reading import read_operations
from verifier.operations.writing import json_line


@pytest.mark.integration
def test_a_received_run_executes_nothing_when_it_is_judged(tmp_path: Path) -> None:
    """``cd received-run && gapless verify .``: neither the command nor the verifier imports what came with the run.

    The run is held by another verifier, which this one says once it has imported whatever it needs.
    """
    run = clean().write(tmp_path / "place" / "run").path
    plant(run)
    descriptor = os.open(run, os.O_RDONLY | os.O_DIRECTORY)
    with Place(tmp_path / "place") as place:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            assert place.run("verify", ".", timeout_s=60, where=run) == 254, place.err
        finally:
            os.close(descriptor)
    assert f"another verifier judges {run} now" in place.err
    assert_nothing_executed(run)


@pytest.mark.integration
def test_a_load_executes_nothing_of_where_it_is_started(tmp_path: Path) -> None:
    """Locust puts the current directory on the path before it loads a locustfile; ours takes it off again."""
    here = tmp_path / "here"
    here.mkdir()
    plant(here)
    with Place(tmp_path / "place") as place:
        options = ("load", "--host", "127.0.0.1:1", "--kafka-rate", "0")
        assert place.run(*options, timeout_s=60, where=here) == 254, place.err
    assert_nothing_executed(here)
    assert "--kafka-rate 0: rate is 0.0" in place.err


@pytest.mark.integration
@pytest.mark.parametrize("name", ["locust.conf", pytest.param("pyproject.toml", marks=pytest.mark.full)])
def test_a_load_obeys_no_settings_that_it_was_not_given(tmp_path: Path, name: str) -> None:
    """Neither of the current directory nor of the home; of a file that ``--config`` names, it does."""
    here, stolen = tmp_path / "here", tmp_path / "stolen"
    (here / "home").mkdir(parents=True)
    stolen.mkdir()
    for number, settings in enumerate(("locust.conf", "pyproject.toml", "home/.locust.conf")):
        path = stolen / str(number)
        section, text = ("[tool.locust]\n", f'"{path}"') if settings.endswith(".toml") else ("", str(path))
        (here / settings).write_text(f"{section}logfile = {text}\n")
    options = ("load", "--host", "127.0.0.1:1", "--kafka-rate", "0")
    with Place(tmp_path / "place") as place:
        home = str(here / "home")
        assert place.run(*options, timeout_s=60, where=here, HOME=home) == 254, place.err
        assert "--kafka-rate 0: rate is 0.0" in place.err
        assert [*stolen.iterdir()] == []
        assert place.run(*options, "--config", str(here / name), timeout_s=60, where=here, HOME=home) == 254, place.err
        (obeyed,) = stolen.iterdir()
        assert f"logfile = {obeyed}" in (here / name).read_text().replace('"', "")
        assert "--kafka-rate 0: rate is 0.0" in obeyed.read_text()


def test_a_supervised_child_imports_nothing_from_where_it_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither multiprocess's first steps nor a program written in Python; a directory on PYTHONPATH still counts."""
    plant(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "asked_for.py").write_text("print('asked for')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "elsewhere"))
    with Supervisor(str(tmp_path)) as supervisor:
        child = supervisor.start_python("one", "tests.cluster.process.targets:announce", {}, str(tmp_path / "log"))
        argv = [sys.executable, "-m", "asked_for"]
        program = supervisor.start_program("two", argv, log_path=str(tmp_path / "program"))
        assert program.wait(20) == 0, (tmp_path / "program").read_text()
        child.wait_message(20)
    assert (tmp_path / "program").read_text() == "asked for\n"
    assert_nothing_executed(tmp_path)


def test_a_history_is_read_by_processes_that_import_nothing_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large file of operations has a process a core, each a fresh interpreter."""
    lines: list[Line] = history()
    (tmp_path / "history.jsonl").write_text("".join(json_line(line) + "\n" for line in lines))
    plant(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert len(read_operations(tmp_path / "history.jsonl", processes=2)) == len(lines)
    assert_nothing_executed(tmp_path)
