"""The Supervisor: starts, records and ends every child of a run. It knows nothing of Kafka.

Owns the children from their birth to their end: each is recorded before it is waited for, lives in a session of its
own behind a lifeline, and is ended when the owner says so or is gone. What runs inside a child is
``cluster.process.child`` or ``cluster.process.wrapper``; who cleans up after ``kill -9`` is ``cluster.process.warden``.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import psutil

from cluster.process import wrapper
from cluster.process.child import ChildChannel, run_child, split_target
from cluster.process.handle import Child, ChildKind, ChildRecord, Ways
from cluster.process.log_files import open_log
from cluster.process.processes import is_alive, marked, signal_quietly, until
from cluster.process.safe_path import SAFE_PATH, safe_path
from cluster.process.signals import Held, held_signals
from cluster.process.tracker import hidden_main, no_resource_tracker
from cluster.process.warden import WardenLink
from cluster.seams.randomness import fresh_seed

__all__ = ["Child", "ChildChannel", "ChildRecord", "Supervisor"]

logger = logging.getLogger(__name__)

#: How long each of the two rounds of ``stop_all`` lets children end in their own way.
GRACE_S = 5.0
_PROGRAM_START_MS = 20_000
_STRAYS_S = 5.0
#: The beginning of the environment variable that marks the descendants of one Supervisor.
_MARK = "GAPLESS_SUPERVISOR"

# multiprocess reaps the finished children of the whole process whenever one is started: one start at a time, so that
# a child that dies at once can still be looked up.
_starting = threading.RLock()

#: JSON values.
Arguments = Mapping[str, Any]


class Supervisor:
    """Starts and ends children. A context manager: leaving it is ``stop_all``. Thread-safe.

    ``directory`` is where a warden that had to act leaves its log. ``on_change`` gets all records whenever a child was
    started or is found to have ended; it is called with the Supervisor's lock held, from the thread that caused it.
    """

    def __init__(self, directory: str, on_change: Callable[[list[ChildRecord]], None] | None = None) -> None:
        self._directory = os.path.abspath(directory)
        self._on_change = on_change
        self._owner_pid = os.getpid()
        self._lock = threading.RLock()
        self._stopping = threading.Lock()
        self._children: list[Child] = []
        self._directories: list[str] = []
        self._closing = False
        self._marker = f"{_MARK}_{os.getpid()}x{fresh_seed():08x}"
        # What this process starts by itself (Spark's Java) carries the mark too: the warden ends it, stop_all does not.
        os.environ[self._marker] = "owner"
        self._warden = WardenLink(self._marker, self._directory)
        atexit.register(self.stop_all)

    def __repr__(self) -> str:
        running = [child.name for child in self._children if child.exit_code is None]
        return f"Supervisor({self._directory}, running: {', '.join(running) or 'none'})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_all()

    @property
    def children(self) -> list[Child]:
        """All children ever started, in order."""
        with self._lock:
            return list(self._children)

    def records(self) -> list[ChildRecord]:
        """All children ever started, and the warden, as ``on_change`` gets them."""
        with self._lock:
            return [self._warden.record(), *(child.record() for child in self._children)]

    def temporary_directory(self, prefix: str = "gapless-") -> str:
        """A new directory under the system's temporary one; removed by ``stop_all``, or by the warden."""
        with self._lock:
            self._refuse_when_closing()
            path = os.path.join(tempfile.gettempdir(), f"{prefix}{os.getpid()}-{fresh_seed():08x}")
            # Told first: a death between the two steps must not leave it behind.
            self._warden.watch_directory(path)
            self._directories.append(path)
            os.mkdir(path, 0o700)
            return path

    def start_python(
        self, name: str, target: str, arguments: Arguments | None, log_path: str | None, *, service: bool = False
    ) -> Child:
        """Start a Python process that calls ``target`` ("module:function") with ``arguments`` and a ChildChannel.

        ``arguments`` are JSON values: they cross into a fresh interpreter. With None the child imports its target
        already and then waits until ``Child.send`` gives it its arguments. Output goes to ``log_path`` (None: where
        ours goes). A ``service`` is something the others need in order to stop well: ``stop_all`` ends it after them.
        Raises ``ValueError`` for a target that is not named so, ``OSError`` if the process cannot be started.
        """
        split_target(target)
        json.dumps(arguments)  # What cannot be sent is refused before anything is started.
        if log_path is not None:
            os.close(open_log(log_path))
        with _starting, self._lock, held_signals():
            self._refuse_when_closing()
            # Here because it costs 60 ms, and most that import this module start nothing; and with signals held,
            # because an interrupt in the middle of an import can be swallowed by a bare except on the way.
            import multiprocess

            context = multiprocess.get_context("spawn")
            ours, theirs = context.Pipe()
            process = context.Process(target=run_child, name=name, args=(theirs, target, log_path, self._marker))
            with no_resource_tracker(), hidden_main(), safe_path():
                process.start()
            theirs.close()
            ways = Ways(lambda: process.exitcode, ours.close, ours)
            child = self._adopt(name, "python", process.pid, ways, log_path, service)
            if arguments is not None:
                with suppress(EOFError):  # Anyone who waits for its first message hears that it has ended.
                    child.send(arguments)
            return child

    def start_program(
        self,
        name: str,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        log_path: str | None = None,
        *,
        service: bool = False,
    ) -> Child:
        """Start a program behind a wrapper of ours that ends it when the lifeline closes.

        ``env`` is added to our own environment. The child's pid, signals and exit status are the program's. Output
        goes to ``log_path`` (None: nowhere). Raises ``OSError`` (``FileNotFoundError``, ...) if it cannot be started.
        """
        environment = {**os.environ, **(env or {}), **SAFE_PATH, self._marker: "child"}
        executable = shutil.which(argv[0], path=environment.get("PATH"))
        if executable is None:
            raise FileNotFoundError(f"{name}: there is no program {argv[0]!r} that can be run")
        output = os.open(os.devnull, os.O_WRONLY) if log_path is None else open_log(log_path)
        theirs, ours = os.pipe()
        reading, status = os.pipe()
        try:
            with _starting, self._lock, held_signals():
                self._refuse_when_closing()
                process = subprocess.Popen(
                    [sys.executable, "-I", "-S", wrapper.__file__, str(theirs), str(status), executable, *argv],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=environment,
                    cwd=cwd,
                    start_new_session=True,
                    pass_fds=(theirs, status),
                )
                lifeline, ours = ours, -1
                ways = Ways(process.poll, lambda: os.close(lifeline), None)
                child = self._adopt(name, "program", process.pid, ways, log_path, service)
            os.close(status)
            status = -1
            self._meet(child, _program_pid(name, reading))
            return child
        finally:
            for descriptor in (output, theirs, ours, reading, status):
                if descriptor >= 0:
                    os.close(descriptor)

    def stop_all(self, grace_s: float = GRACE_S) -> None:
        """End every child, what descends from them, and the warden; remove temporary directories.

        First SIGTERM to all but services, then to services, each round with ``grace_s`` seconds, then SIGKILL for what
        is left, also for what is suspended. A signal that arrives meanwhile (a second Ctrl-C) cuts the grace short and
        is delivered at the end. A second call does nothing, nor does one in a forked copy of this process. Bounded by
        twice the grace and some 15 s.
        """
        if os.getpid() != self._owner_pid:
            return
        with held_signals() as held, self._stopping:
            with self._lock:
                if self._closing:
                    return
                self._closing = True
            children = self.children
            for services in (False, True):
                _stop_round([child for child in children if child.service is services], grace_s, held)
            self._end_strays()
            for path in self._directories:
                shutil.rmtree(path, ignore_errors=True)
            self._warden.dismiss()
            os.environ.pop(self._marker, None)
            atexit.unregister(self.stop_all)

    def _adopt(self, name: str, kind: ChildKind, pid: int, ways: Ways, log_path: str | None, service: bool) -> Child:
        """Take a new child in: watched by the warden and recorded before anything else happens to it."""
        key = f"{name}/{len(self._children)}"
        process = psutil.Process(pid)
        child = Child(name, kind, process, ways, lambda: self._ended(key), log_path=log_path, service=service)
        self._children.append(child)
        try:
            self._warden.watch(key, process)
            self._changed()
        except BaseException:
            child.kill()
            raise
        return child

    def _meet(self, child: Child, pid: int) -> None:
        """The wrapper ``child`` has started its program: the child stands for that from now on."""
        try:
            process = psutil.Process(pid)
        except psutil.NoSuchProcess:
            return  # It has ended already; the wrapper has its exit status.
        with self._lock:
            child.stand_for(process)
            self._changed()

    def _ended(self, key: str) -> None:
        with self._lock:
            if not self._closing:
                self._warden.forget(key)
            self._changed()

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change(self.records())

    def _end_strays(self) -> None:
        """End what our children left behind: orphans in sessions of their own, a program without its wrapper."""

        def end() -> bool:
            found = {process.pid: process for child in self.children for process in child.identities}
            found = {pid: process for pid, process in found.items() if is_alive(process)}
            found |= {process.pid: process for process in marked(self._marker, "child")}
            for process in found.values():
                logger.warning("process %d was left behind and is killed", process.pid)
                signal_quietly(process, signal.SIGKILL)
                signal_quietly(process, signal.SIGCONT)
            return not found

        until(end, _STRAYS_S)

    def _refuse_when_closing(self) -> None:
        if self._closing:
            raise RuntimeError("the supervisor has been stopped; it starts nothing more")


def _stop_round(children: Sequence[Child], grace_s: float, held: Held) -> None:
    """End these children together: SIGTERM, the grace, SIGKILL."""
    running = [child for child in children if child.is_running()]
    for child in running:
        child.terminate()
        child.resume()
    until(lambda: bool(held.received) or not any(child.is_running() for child in running), grace_s)
    for child in running:
        if child.is_running():
            logger.warning("%s did not end within %.1f s and is killed", child.name, grace_s)
            child.kill()
    for child in children:
        child.release()


def _program_pid(name: str, reading: int) -> int:
    """The pid that a wrapper reports. Raises ``OSError`` if it could not start its program."""
    poller = select.poll()
    poller.register(reading, select.POLLIN)
    line = os.read(reading, 4096) if poller.poll(_PROGRAM_START_MS) else b""
    message = json.loads(line or b'{"error": "its wrapper said nothing"}')
    if "error" in message:
        raise OSError(f"{name} could not be started: {message['error']}")
    return int(message["pid"])
