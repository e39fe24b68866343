"""The operating system's processes: which is which, how one is ended for sure, and waiting for it.

Owns identity (a pid and its creation time, never a pid alone) and the mark by which descendants are found. Does not
know children, nor who owns them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil

#: How far two readings of one process's creation time may lie apart (the clock may be stepped between them).
CREATION_TOLERANCE_S = 1.0


def find(pid: int, creation_time: float) -> psutil.Process | None:
    """The process of that pid and creation time (seconds since the epoch), None if it is gone or another's now."""
    try:
        process = psutil.Process(pid)
        same = abs(process.create_time() - creation_time) < CREATION_TOLERANCE_S
    except psutil.Error:
        return None
    return process if same else None


def is_alive(process: psutil.Process) -> bool:
    """Whether it still runs or is stopped: not gone, not a zombie, and not another process with its pid."""
    try:
        return process.is_running() and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.Error:
        return False


def signal_quietly(process: psutil.Process, signum: int) -> bool:
    """Send a signal; False if the process is gone. psutil compares the identity first."""
    try:
        process.send_signal(signum)
    except psutil.Error:
        return False
    return True


def marked(name: str, value: str | None = None) -> list[psutil.Process]:
    """The processes that were born with the environment variable ``name`` (set to ``value`` if that is given).

    The environment at birth cannot be changed later, passes to all descendants, also into other sessions, and belongs
    to one process: it finds what was started by something that did not tell us. This process is never among them.
    """
    found = []
    own = psutil.Process().pid
    for process in psutil.process_iter():
        try:
            seen = process.environ().get(name) if process.pid != own else None
        except (psutil.Error, OSError):
            continue
        if seen is not None and value in (None, seen) and is_alive(process):
            found.append(process)
    return found


def until(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Wait until ``condition`` holds; whether it did within ``timeout_s``. Asked every 1 to 20 ms."""
    deadline = time.monotonic() + timeout_s
    pause_s = 0.001
    while not condition():
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(pause_s, left))
        pause_s = min(pause_s * 2, 0.02)
    return True
