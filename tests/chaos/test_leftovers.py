"""What a killed conductor left is found by its record and ended; what anyone else has is left alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from chaos.conductor.leftovers import FILE, WorkedOn, clean, clean_continued, work_on
from cluster.process.processes import is_alive
from cluster.process.supervisor import ChildRecord

Identity = dict[str, object]


@pytest.fixture
def sleepers() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that only wait; whatever a test leaves of them ends with it."""
    program = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"]
    started = [subprocess.Popen(program) for _ in range(3)]
    yield started
    for each in started:
        each.kill()
        each.wait()


def _identity(pid: int, later_s: float = 0.0) -> Identity:
    return {"pid": pid, "creation_time": psutil.Process(pid).create_time() + later_s}


#: No process is that old.
GONE: Identity = {"pid": 1, "creation_time": 1.0}


def _left(directory: Path, conductor: Identity, **children: Identity) -> Path:
    directory.mkdir(parents=True)
    named = [{"name": name.replace("_", "-"), **identity} for name, identity in children.items()]
    (directory / FILE).write_text(json.dumps({"run_id": 7, "conductor": conductor, "children": named}))
    return directory


def _is_alive(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is None and is_alive(psutil.Process(process.pid))


def test_what_a_killed_conductor_left_is_ended(tmp_path: Path, sleepers: list[subprocess.Popen[bytes]]) -> None:
    """Also what is stopped; not a process that has the pid of one that is gone."""
    stopped, running, other = sleepers
    os.kill(stopped.pid, signal.SIGSTOP)
    known = {"broker_1": _identity(stopped.pid), "zookeeper": _identity(running.pid)}
    run = _left(tmp_path / "run" / "1", GONE, **known, proxy=_identity(other.pid, later_s=30.0))
    (line,) = clean(tmp_path)
    assert line == (
        f"{run} was left by a conductor that was killed (run 7): "
        f"ended broker-1 ({stopped.pid}), zookeeper ({running.pid})"
    )
    assert [_is_alive(each) for each in sleepers] == [False, False, True]
    assert not (run / FILE).exists()
    assert clean(tmp_path) == []


def test_a_run_that_is_being_conducted_is_left_alone(tmp_path: Path, sleepers: list[subprocess.Popen[bytes]]) -> None:
    """Another gapless in the same directory has its conductor, and so has a run beside a sweep that is continued."""
    running, conductor, _ = sleepers
    run = _left(tmp_path / "run" / "1", _identity(conductor.pid), broker=_identity(running.pid))
    assert clean(tmp_path) == []
    work = work_on(run)
    assert work is not None and work.conductor is not None and work.conductor.pid == conductor.pid
    assert clean_continued(tmp_path / "run" / "2") == []
    assert all(map(_is_alive, sleepers)) and (run / FILE).exists()


def test_what_is_continued_has_no_conductor_left(tmp_path: Path, sleepers: list[subprocess.Popen[bytes]]) -> None:
    """A cell of a sweep that was killed may still have its own: that is ended with the rest."""
    conductor, broker, _ = sleepers
    sweep = _left(tmp_path / "seeds" / "1", GONE)
    cell = _left(sweep / "cells" / "seed-2", _identity(conductor.pid), broker=_identity(broker.pid))
    first, second = clean_continued(sweep)
    assert first.endswith("nothing of it was left")
    assert second.endswith(f"ended its conductor ({conductor.pid}), broker ({broker.pid})")
    assert [_is_alive(each) for each in sleepers] == [False, False, True]
    assert not (sweep / FILE).exists() and not (cell / FILE).exists()


def test_cells_and_tries_are_found_and_a_sweep_can_be_resumed(tmp_path: Path) -> None:
    """Wherever a run may be below results; the line of a sweep has the command that continues it."""
    sweep = _left(tmp_path / "seeds" / "1", GONE)
    (sweep / "sweep.json").write_text("{}")
    _left(sweep / "cells" / "seed-2", GONE)
    _left(tmp_path / "shrink" / "1" / "tries" / "003", GONE)
    _left(tmp_path / "nightly" / "1" / "shrunk" / "seed-2", GONE)
    _left(tmp_path / "nightly" / "1" / "shrunk" / "seed-2" / "tries" / "004", GONE)
    _left(tmp_path / "mine", GONE)
    (tmp_path / "latest").symlink_to("mine")
    lines = clean(tmp_path)
    assert len(lines) == 7
    assert sum(f"sweep --resume {sweep}" in line for line in lines) == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"run_id": 7, "conductor": {}, "children": []}'])
def test_a_record_that_cannot_be_read_is_no_ones(text: str, tmp_path: Path) -> None:
    """A record that cannot be read ends no process: none is ended on a guess."""
    directory = tmp_path / "run" / "1"
    directory.mkdir(parents=True)
    (directory / FILE).write_text(text)
    assert work_on(directory) is None
    assert clean(tmp_path) == []


def test_the_record_is_there_while_someone_works(tmp_path: Path, sleepers: list[subprocess.Popen[bytes]]) -> None:
    """With what has been started and has not ended; nothing stays behind."""
    with WorkedOn(tmp_path, 7) as worked_on:
        work = work_on(tmp_path)
        assert work is not None and (work.run_id, work.children) == (7, ())
        assert work.conductor is not None and work.conductor.pid == os.getpid()
        running, ended = (
            ChildRecord(name, "program", each.pid, psutil.Process(each.pid).create_time(), code)
            for name, each, code in (("broker", sleepers[0], None), ("proxy", sleepers[1], 0))
        )
        worked_on.children([running, ended])
        work = work_on(tmp_path)
        assert work is not None
        assert [(name, process.pid) for name, process in work.children] == [("broker", sleepers[0].pid)]
    assert list(tmp_path.iterdir()) == []
