"""A command of gapless in a place of its own, and what it has left there: processes, ports, temporary files.

Owns how they are found: by a mark in the environment at birth that all descendants inherit, by the Supervisor's own
mark, or by a working directory inside the place; never by a name, so that other runs on the machine are left alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

import psutil

from cluster.process.processes import is_alive, signal_quietly, until

ROOT = Path(__file__).parents[2]
#: The program as users start it: ``python -m`` would look for modules where it runs.
GAPLESS = Path(sys.executable).with_name("gapless")
_MARK = "GAPLESS_TEST_PLACE"
_SUPERVISOR = "GAPLESS_SUPERVISOR_"


class Place:
    """A working directory and a temporary directory for commands. Leaving it ends whatever they left behind."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.temporary = directory / "tmp"
        self.temporary.mkdir(parents=True)
        self._mark = uuid4().hex
        self._owners: list[subprocess.Popen[bytes]] = []
        self._listened: dict[int, set[int]] = {}
        self._seen: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.processes():
            signal_quietly(process, signal.SIGKILL)
        for owner in self._owners:
            owner.wait()

    def start(self, *arguments: str, where: Path | None = None, **environment: str) -> subprocess.Popen[bytes]:
        """Start ``gapless`` with these arguments, in the directory ``where`` (None: in the place's own).

        Its output goes to the files ``out`` and ``err``.
        """
        changed = {_MARK: self._mark, "TMPDIR": str(self.temporary), "PYTHONPATH": str(ROOT), **environment}
        with (self.directory / "out").open("wb") as out, (self.directory / "err").open("wb") as err:
            owner = subprocess.Popen(
                [str(GAPLESS), *arguments],
                cwd=where or self.directory,
                env={**os.environ, **changed},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        self._owners.append(owner)
        return owner

    def run(self, *arguments: str, timeout_s: float, where: Path | None = None, **environment: str) -> int:
        """Start it, wait for its end, and answer with its exit status."""
        return self.start(*arguments, where=where, **environment).wait(timeout_s)

    @property
    def out(self) -> str:
        """Standard output of the last command, so far."""
        return (self.directory / "out").read_text()

    @property
    def err(self) -> str:
        """Standard error of the last command, so far."""
        return (self.directory / "err").read_text()

    def wait_for(self, text: str, timeout_s: float, where: Callable[[Place], str] = lambda place: place.err) -> None:
        """Wait until the last command has printed ``text``; fails at its end or after ``timeout_s``."""
        owner = self._owners[-1]
        until(lambda: text in where(self) or owner.poll() is not None, timeout_s)
        assert text in where(self), f"no {text!r} within {timeout_s} s; exit status {owner.poll()}\n{self.err}"

    def processes(self) -> list[psutil.Process]:
        """The living processes that come from here, and note of the ports on which they listen."""
        marks = tuple(f"{_SUPERVISOR}{owner.pid}x" for owner in self._owners)
        found = []
        for process in psutil.process_iter():
            try:
                environment = process.environ()
                born_here = environment.get(_MARK) == self._mark or any(name.startswith(marks) for name in environment)
                if not born_here and not Path(process.cwd()).is_relative_to(self.directory):
                    continue
                if process.pid != os.getpid() and is_alive(process):
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        self._note(found)
        return found

    def _note(self, found: list[psutil.Process]) -> None:
        self._seen |= {process.pid for process in found}
        for process in found:
            try:
                listening = [each for each in process.net_connections("tcp") if each.status == psutil.CONN_LISTEN]
            except psutil.Error:
                continue
            for each in listening:
                self._listened.setdefault(each.laddr.port, set()).add(process.pid)

    @property
    def ports(self) -> list[int]:
        """The ports on which the processes that were ever found here listened when they were."""
        return sorted(self._listened)

    def leftovers(self) -> list[str]:
        """What is still there, one line each."""
        left = []
        for process in self.processes():
            try:
                left.append(f"process {process.pid} ({process.status()}): {' '.join(process.cmdline())[:200]}")
            except psutil.Error:
                continue
        for each in psutil.net_connections("tcp"):
            ours = each.pid is None or each.pid in self._listened.get(each.laddr.port, ())
            if each.status == psutil.CONN_LISTEN and each.laddr.port in self._listened and ours:
                left.append(f"port {each.laddr.port} of {each.pid}")
        left += [f"temporary {path}" for path in sorted(self.temporary.iterdir())]
        # A JVM keeps its counters outside every TMPDIR.
        for path in Path(tempfile.gettempdir()).glob("hsperfdata_*/*"):
            if path.name.isdigit() and int(path.name) in self._seen:
                left.append(f"temporary {path}")
        return left

    def assert_nothing_left(self, within_s: float = 0.0) -> None:
        """Fails with the list of what is left after ``within_s``."""
        left: list[str] = []

        def gone() -> bool:
            left[:] = self.leftovers()
            return not left

        assert until(gone, within_s) or not left, "\n".join(left)
