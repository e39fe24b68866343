"""What multiprocess does by itself and we do otherwise: its resource tracker, and its import of our main module.

The tracker is a helper process that it starts unasked and ends with the interpreter only. Owns starting it without
letting signals in, ending it earlier, so that nothing of a run is left once its Supervisor has stopped, and what a new
child is told of our main module.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from cluster.process.processes import until

_LIMIT_S = 2.0


def ensure_resource_tracker() -> None:
    """Start the tracker if there is none yet, and leave the signal mask as it is: multiprocess unblocks SIGINT and
    SIGTERM when it starts one, whatever was blocked before."""
    from multiprocess import resource_tracker

    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        resource_tracker.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextmanager
def hidden_main() -> Iterator[None]:
    """Spare children that start meanwhile the import of our main module, in case their target is in it.

    None is (a target is named by its module), and the command line's is a second of CPU and 40 MB in every child.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def end_resource_tracker() -> None:
    """End this process's tracker, unless multiprocess children of it still live (they hold the other end).

    multiprocess has no public way for this. Its own ``_stop`` waits without bound; here the wait is bounded, and the
    tracker, an unreaped child of ours whose pid can therefore be nobody else's, is killed at the end of it.
    """
    module = sys.modules.get("multiprocess.resource_tracker")
    if module is None:
        return
    import multiprocess

    tracker = module._resource_tracker
    with tracker._lock:
        if tracker._fd is None or tracker._pid is None or multiprocess.active_children():
            return
        os.close(tracker._fd)
        pid, tracker._fd, tracker._pid = tracker._pid, None, None
        if not until(lambda: _reaped(pid), _LIMIT_S):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
