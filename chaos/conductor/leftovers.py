"""What a conductor that was killed left behind: found by its record in the directory that it worked on, and ended.

Owns ``processes.json``, which is there as long as someone works on the directory: the id of the run, who conducts it,
and what that one has started, each with its pid and the time of its creation. No process is ever looked for by a name.
Usually the warden has done all of this long before (``cluster.process.warden``); this is for when it was killed too.
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
#: The warden of a conductor that has just been killed is given this long: it also removes temporary directories.
WARDEN_S = 12.0
_ENDED_S = 5.0
#: Where the directories of runs, sweeps and tries are, below ``results``.
_PLACES = (
    f"*/{FILE}",
    f"*/*/{FILE}",
    f"*/*/cells/*/{FILE}",
    f"*/*/tries/*/{FILE}",
    f"*/*/shrunk/*/{FILE}",
    f"*/*/shrunk/*/tries/*/{FILE}",
)
#: And below one of a sweep or of shrinking.
_INNER = (f"cells/*/{FILE}", f"tries/*/{FILE}", f"shrunk/*/{FILE}", f"shrunk/*/tries/*/{FILE}")


class WorkedOn:
    """A context manager around a Supervisor: says who works on a directory, and with which processes."""

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
        """What the Supervisor has started, for its ``on_change``."""
        told = [(each.name, each.pid, each.creation_time) for each in records if each.exit_code is None]
        self._whole["children"] = [
            {"name": name, "pid": pid, "creation_time": creation_time} for name, pid, creation_time in told
        ]
        # someone may have removed the directory, which must not make a Supervisor fail
        with suppress(OSError):
            write_json_atomic(self._path, self._whole)


@dataclass(frozen=True, slots=True)
class LeftWork:
    """What a ``processes.json`` says."""

    path: Path
    run_id: int
    conductor: psutil.Process | None
    children: tuple[tuple[str, psutil.Process], ...]

    @property
    def directory(self) -> Path:
        return self.path.parent


def work_on(directory: Path) -> LeftWork | None:
    """Who works on a directory, or was killed while working on it; None without a readable record."""
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
    """End what killed conductors left of the runs, sweeps and tries below this directory; a line on each for people."""
    lines = []
    for directory in sorted({path.parent.resolve() for pattern in _PLACES for path in results.glob(pattern)}):
        work = work_on(directory)
        if work is not None and work.conductor is None:
            lines += _cleaned(work)
            if (directory / "sweep.json").is_file():
                lines.append(f"it is a sweep; resume it with: {command(['sweep', '--resume', str(directory)])}")
    return lines


def clean_continued(directory: Path) -> list[str]:
    """The same for a directory that is continued, and for its cells or tries. Ends their conductors, too, so callers
    first check that no one works on the directory (``work_on``).
    """
    work = work_on(directory)
    lines = [] if work is None else _cleaned(work)
    for path in sorted(path for pattern in _INNER for path in directory.glob(pattern)):
        inner = work_on(path.parent)
        lines += [] if inner is None else _cleaned(inner)
    return lines


def _cleaned(work: LeftWork) -> list[str]:
    """End all of its processes and remove the record; returns what was done, in a line."""
    wardens = [process for name, process in work.children if name == "warden"]
    if wardens and work.conductor is None:
        until(lambda: not any(map(is_alive, wardens)), WARDEN_S)
    named = [] if work.conductor is None else [("its conductor", work.conductor)]
    # a conductor that is being ended may have started something since
    ended = list(_ended(named))
    now = work_on(work.directory)
    ended += _ended([*work.children, *(now.children if now is not None else ())])
    work.path.unlink(missing_ok=True)
    what = f"ended {', '.join(dict.fromkeys(ended))}" if ended else "nothing of it was left"
    return [f"{work.directory} was left by a conductor that was killed (run {work.run_id}): {what}"]


def _ended(named: Sequence[tuple[str, psutil.Process]]) -> Iterator[str]:
    """End these processes and wait until they are gone; returns their names."""
    living = [(name, process) for name, process in named if is_alive(process)]
    for _, process in living:
        signal_quietly(process, signal.SIGKILL)
        signal_quietly(process, signal.SIGCONT)
    until(lambda: not any(is_alive(process) for _, process in living), _ENDED_S)
    yield from (f"{name} ({process.pid})" for name, process in living)
