"""Ends the processes that a killed conductor left behind.

Owns ``processes.json``, which exists in a directory as long as a conductor works on it: the id of the run, and the
conductor and its child processes, each with its pid and creation time. No process is ever looked up by its name. The
warden usually ends these processes first (``cluster.process.warden``); this module is for the case that the warden was
killed, too.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from cluster.process.invocation import command
from cluster.process.processes import find, is_alive, signal_quietly, until
from cluster.process.supervisor import ChildRecord
from verifier.evidence.run_directory import read_json, write_json_atomic

FILE = "processes.json"
#: How long the warden of a killed conductor may take to end the other processes and remove temporary directories.
WARDEN_S = 12.0
_ENDED_S = 5.0
#: Where ``processes.json`` can be below ``results``: in the directories of runs, sweeps, cells and tries.
_PLACES = (
    f"*/{FILE}",
    f"*/*/{FILE}",
    f"*/*/cells/*/{FILE}",
    f"*/*/tries/*/{FILE}",
    f"*/*/shrunk/*/{FILE}",
    f"*/*/shrunk/*/tries/*/{FILE}",
)
#: Where it can be below the directory of a sweep or a shrinking.
_INNER = (f"cells/*/{FILE}", f"tries/*/{FILE}", f"shrunk/*/{FILE}", f"shrunk/*/tries/*/{FILE}")


class WorkedOn:
    """A context manager that keeps ``processes.json`` in a directory while this process works on it."""

    def __init__(self, directory: Path, run_id: int) -> None:
        self._path = directory / FILE
        own = psutil.Process()
        self._whole: dict[str, Any] = {
            "run_id": run_id,
            "conductor": {"pid": own.pid, "creation_time": own.create_time()},
            "children": [],
        }

    def __enter__(self) -> Self:
        write_json_atomic(self._path, self._whole)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._path.unlink(missing_ok=True)

    def children(self, records: Sequence[ChildRecord]) -> None:
        """Write which children of the Supervisor run. To be passed as its ``on_change``."""
        told = [(each.name, each.pid, each.creation_time) for each in records if each.exit_code is None]
        self._whole["children"] = [
            {"name": name, "pid": pid, "creation_time": creation_time} for name, pid, creation_time in told
        ]
        # a user may have removed the directory, which must not make the Supervisor fail
        with suppress(OSError):
            write_json_atomic(self._path, self._whole)


@dataclass(frozen=True, slots=True)
class LeftWork:
    """What a ``processes.json`` says. Has only processes that still run; ``conductor`` is None if it has ended."""

    path: Path
    run_id: int
    conductor: psutil.Process | None
    children: tuple[tuple[str, psutil.Process], ...]

    @property
    def directory(self) -> Path:
        return self.path.parent


def work_on(directory: Path) -> LeftWork | None:
    """What the ``processes.json`` of a directory says; None if it is missing or unreadable."""
    try:
        plain = read_json(directory / FILE)
        children = [(str(each["name"]), _living(each)) for each in plain["children"]]
        conductor = _living(plain["conductor"])
        alive = tuple((name, process) for name, process in children if process is not None)
        return LeftWork(directory / FILE, int(plain["run_id"]), conductor, alive)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _living(identity: Mapping[str, Any]) -> psutil.Process | None:
    process = find(int(identity["pid"]), float(identity["creation_time"]))
    return process if process is not None and is_alive(process) else None


def clean(results: Path) -> list[str]:
    """End what killed conductors left behind below ``results``. Returns a line for the user about each directory."""
    lines = []
    for directory in sorted({path.parent.resolve() for pattern in _PLACES for path in results.glob(pattern)}):
        work = work_on(directory)
        if work is not None and work.conductor is None:
            lines += _cleaned(work)
            if (directory / "sweep.json").is_file():
                lines.append(f"it is a sweep; resume it with: {command(['sweep', '--resume', str(directory)])}")
    return lines


def clean_continued(directory: Path) -> list[str]:
    """The same for a directory that is about to be continued, and its cells or tries.

    Also ends their conductors, so callers must first check that no process works on the directory (``work_on``).
    """
    work = work_on(directory)
    lines = [] if work is None else _cleaned(work)
    for path in sorted(path for pattern in _INNER for path in directory.glob(pattern)):
        inner = work_on(path.parent)
        lines += [] if inner is None else _cleaned(inner)
    return lines


def _cleaned(work: LeftWork) -> list[str]:
    """End all processes of ``work`` and remove its ``processes.json``; returns one line on what was done."""
    wardens = [process for name, process in work.children if name == "warden"]
    if wardens and work.conductor is None:
        until(lambda: not any(map(is_alive, wardens)), WARDEN_S)
    named = [] if work.conductor is None else [("its conductor", work.conductor)]
    # the conductor may have started another process before it ended
    ended = list(_ended(named))
    now = work_on(work.directory)
    ended += _ended([*work.children, *(now.children if now is not None else ())])
    work.path.unlink(missing_ok=True)
    what = f"ended {', '.join(dict.fromkeys(ended))}" if ended else "nothing of it was left"
    return [f"{work.directory} was left by a conductor that was killed (run {work.run_id}): {what}"]


def _ended(named: Sequence[tuple[str, psutil.Process]]) -> Iterator[str]:
    """Kill these processes, wait until they have exited, and yield ``NAME (PID)`` for each that was alive."""
    living = [(name, process) for name, process in named if is_alive(process)]
    for _, process in living:
        signal_quietly(process, signal.SIGKILL)
        signal_quietly(process, signal.SIGCONT)
    until(lambda: not any(is_alive(process) for _, process in living), _ENDED_S)
    yield from (f"{name} ({process.pid})" for name, process in living)
