"""What is left of a run whose owner was killed, or interrupted while it started children: nothing."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from cluster.process.processes import is_alive, marked, until

pytestmark = pytest.mark.integration

#: The promise of DEVELOPERS.md ("Processes"): whatever is left then has ended.
PROMISE_S = 10.0
ROOT = Path(__file__).parents[3]


def own(how: str, directory: Path) -> tuple[subprocess.Popen[str], dict[str, object]]:
    """Start an owner and wait for the line that says what it has."""
    owner = subprocess.Popen(
        [sys.executable, "-m", "tests.cluster.process.owner", how, str(directory)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    assert owner.stdout is not None
    return owner, json.loads(owner.stdout.readline())


def finish(owner: subprocess.Popen[str]) -> str:
    rest, _none = owner.communicate(timeout=60)
    return rest


def test_kill_9_leaves_nothing(tmp_path: Path) -> None:
    """No child, no wrapper, no stray, no warden, no port and no temporary directory outlives the owner by 10 s."""
    owner, found = own("everything", tmp_path)
    processes = [psutil.Process(pid) for pid in found["pids"]]
    processes += psutil.Process(owner.pid).children(recursive=True)
    owner.kill()
    begin = time.monotonic()
    assert until(lambda: not any(is_alive(process) for process in processes), PROMISE_S)
    assert until(lambda: not os.path.exists(str(found["temporary"])), PROMISE_S - (time.monotonic() - begin))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(str(found["port"]))))
    finish(owner)
    lines = (tmp_path / "warden.log").read_text().splitlines()
    assert lines[0] == "the owner was gone without a goodbye"
    assert f"removed directory {found['temporary']}" in lines


@pytest.mark.parametrize("delay_ms", [0, 3, 10, 30, 75, 150])
def test_kill_9_while_starting_leaves_nothing(tmp_path: Path, delay_ms: int) -> None:
    """There is no moment in a start at which the owner's death leaves something behind."""
    owner, found = own("starting", tmp_path)
    time.sleep(delay_ms / 1000)  # The moment of the kill is what is varied.
    owner.kill()
    marker = str(found["marker"])
    assert until(lambda: not marked(marker), PROMISE_S)
    finish(owner)
    left = Path(tempfile.gettempdir())
    assert until(lambda: not list(left.glob(f"gapless-{owner.pid}-*")), PROMISE_S)


@pytest.mark.parametrize("delay_ms", [1, 20, 60])
def test_ctrl_c_while_starting_reaches_no_child(tmp_path: Path, delay_ms: int) -> None:
    """An interrupt of the whole process group during a start comes after it, and the newborn child lives."""
    owner, _found = own("interrupted", tmp_path)
    time.sleep(delay_ms / 1000)  # The moment of the interrupt is what is varied.
    os.killpg(owner.pid, signal.SIGINT)
    told = json.loads(finish(owner).splitlines()[-1])
    assert told["messages"] == ["bound"] * len(told["messages"])
    assert all(told["running"])
    assert owner.returncode == 0
