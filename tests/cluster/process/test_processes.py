"""Identity: a pid and its creation time, never a pid alone."""

from __future__ import annotations

import os
import signal
import subprocess

import psutil
import pytest

from cluster.process.processes import find, is_alive, marked, signal_quietly, until
from cluster.process.warden import WardenWatch


def test_a_pid_with_another_creation_time_is_another_process() -> None:
    """A pid that was given to somebody else is not found, so it cannot be killed by mistake."""
    own = psutil.Process()
    assert find(own.pid, own.create_time()) == own
    assert find(own.pid, own.create_time() - 60) is None
    assert find(2**22 + 1, own.create_time()) is None


@pytest.mark.integration
def test_a_dead_process_is_neither_alive_nor_an_error() -> None:
    """A zombie counts as dead, and a signal to one that is gone says so quietly."""
    child = subprocess.Popen(["sleep", "600"])
    process = psutil.Process(child.pid)
    assert is_alive(process)
    child.send_signal(signal.SIGKILL)
    assert until(lambda: not is_alive(process), 10)
    child.wait()
    assert not is_alive(process)
    assert not signal_quietly(process, signal.SIGTERM)


@pytest.mark.integration
def test_marked_processes_are_found_by_name_and_value() -> None:
    """The mark is the environment at birth; this process itself is never among the found."""
    name = f"GAPLESS_TEST_{os.getpid()}"
    child = subprocess.Popen(["sleep", "600"], env={name: "a"})
    try:
        assert until(lambda: [process.pid for process in marked(name)] == [child.pid], 10)
        assert [process.pid for process in marked(name, "a")] == [child.pid]
        assert marked(name, "b") == []
    finally:
        child.kill()
        child.wait()


def test_until_gives_up_in_time() -> None:
    """A condition that never holds ends the wait with False; one that holds is asked once."""
    asked = []
    assert not until(lambda: bool(asked.append(1)), 0.01)
    assert len(asked) >= 2
    assert until(lambda: True, 0)


def test_the_warden_forgets_and_survives_torn_messages() -> None:
    """A message cut off by the owner's death is nothing; what was forgotten is not touched."""
    own = psutil.Process()
    watch = WardenWatch("GAPLESS_TEST_NOBODY")
    watch.hear(f'{{"watch": "me", "pid": {own.pid}, "creation_time": {own.create_time()}}}'.encode())
    watch.hear(b'{"watch": "/nowhere", "directory": "/nowhere"}')
    assert repr(watch) == "WardenWatch(1 processes, 1 directories)"
    watch.hear(b'{"forget": "me"}')
    watch.hear(b'{"watch": "torn", "pi')
    watch.hear(f'{{"watch": "old", "pid": {own.pid}, "creation_time": {own.create_time() - 60}}}'.encode())
    assert repr(watch) == "WardenWatch(0 processes, 1 directories)"
    assert watch.clean_up() == []
    assert not watch.dismissed
    watch.hear(b'{"goodbye": true}')
    assert watch.dismissed
