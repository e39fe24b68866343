"""The parent of a program that is not ours (java): a script of its own, with the standard library alone.

Owns: being the session's leader, watching the lifeline, ending the program and its process group when the owner goes
(also when they are stopped), passing signals and the exit status on. Knows nothing of what it runs. Usage:
``wrapper.py LIFELINE_FD STATUS_FD EXECUTABLE ARGV0 [ARGUMENT...]``; one JSON line is written to STATUS_FD.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import select
import signal
import sys

EXIT_ORPHANED = 113
EXIT_NOT_STARTED = 127
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(arguments: list[str]) -> int:
    lifeline, status = int(arguments[0]), int(arguments[1])
    executable, argv = arguments[2], arguments[3:]
    for descriptor in (lifeline, status):
        os.set_inheritable(descriptor, False)
    wakeup_read, wakeup_write = os.pipe()
    os.set_blocking(wakeup_write, False)
    signal.set_wakeup_fd(wakeup_write)
    for signum in (signal.SIGCHLD, *_FORWARDED):
        signal.signal(signum, lambda _signum, _frame: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        pid = os.posix_spawn(
            executable,
            argv,
            os.environ,
            setpgroup=0,
            setsigmask=(),
            setsigdef=(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD, signal.SIGXFSZ),
        )
    except OSError as error:
        _report(status, {"error": f"{os.strerror(error.errno or errno.EINVAL)}: {executable}"})
        return EXIT_NOT_STARTED
    _report(status, {"pid": pid})
    return _watch(pid, lifeline, wakeup_read)


def _report(status: int, message: dict[str, object]) -> None:
    # An owner that is gone is noticed by the lifeline.
    with contextlib.suppress(BrokenPipeError):
        os.write(status, json.dumps(message).encode() + b"\n")
    os.close(status)


def _watch(pid: int, lifeline: int, wakeup: int) -> int:
    """Until the program ends or the lifeline closes; the exit status for the owner, negative for a signal."""
    poller = select.poll()
    poller.register(lifeline, select.POLLIN)
    poller.register(wakeup, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _event in poller.poll()}
        if wakeup in ready:
            for signum in os.read(wakeup, 512):
                if signum in _FORWARDED:
                    os.kill(pid, signum)
            # WNOWAIT: while the program is a zombie its pid, and so its group's, cannot become another's.
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return _reap(pid)
        if lifeline in ready and not os.read(lifeline, 512):
            _reap(pid)
            return EXIT_ORPHANED


def _reap(pid: int) -> int:
    """End what is left of the program's group, and the program; its exit status."""
    for signum in (signal.SIGKILL, signal.SIGCONT):
        try:
            os.killpg(pid, signum)
        except (ProcessLookupError, PermissionError):
            break
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def leave(code: int) -> None:
    """End as the program did: with its status, or by its signal (without a core of our own)."""
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signum = -code
        if signum != signal.SIGKILL:
            signal.signal(signum, signal.SIG_DFL)
        os.kill(os.getpid(), signum)
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
