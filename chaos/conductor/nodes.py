"""``--nodes``: how the brokers of a cluster that others started are killed, paused and started again (docs/target.md).

Owns the format of the file, and how signals and commands are carried out. The brokers are not the run's: what it
starts here is not its child, and outlives it.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import psutil

from chaos.conductor.starting import StartFailure
from cluster.process.processes import is_alive, signal_quietly, until
from loadgen.documents import DocumentError, load_yaml, read_text

COMMAND_S = 60.0
SIGNAL_S = 5.0
START_S = 60.0
#: Not passed on: by these variables a Supervisor recognizes its own processes, which it ends.
_MARKS = "GAPLESS_"


class NodesError(ValueError):
    """The file is malformed; the message names it and the field."""


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """What the file says about one broker. Commands are split as a shell does, and run without one."""

    pid_file: str = ""
    kill: str = ""
    pause: str = ""
    resume: str = ""
    start: str = ""
    #: exits with 0 while the broker runs
    alive: str = ""


FIELDS = tuple(each.name for each in fields(NodeSpec))


class NodeProcess:
    """``BrokerProcess`` for one broker. Every method may block."""

    def __init__(self, broker_id: int, spec: NodeSpec) -> None:
        self._broker_id = broker_id
        self._spec = spec
        self._paused = False

    def __repr__(self) -> str:
        return f"NodeProcess(broker {self._broker_id})"

    @property
    def pid(self) -> int:
        """-1 if there is no pid file."""
        found = self._process()
        return -1 if found is None else found.pid

    def is_running(self) -> bool:
        if self._spec.alive:
            return self._run("alive") == 0
        found = self._process()
        return is_alive(found) if found is not None else not self._spec.pid_file

    def kill(self) -> None:
        self._paused = False
        self._do("kill", signal.SIGKILL)
        until(lambda: not self.is_running(), SIGNAL_S)

    def suspend(self) -> None:
        self._do("pause", signal.SIGSTOP)
        self._paused = True
        if self._spec.pid_file and not self._spec.pause:
            until(self.is_suspended, SIGNAL_S)

    def resume(self) -> None:
        self._do("resume", signal.SIGCONT)
        self._paused = False

    def is_suspended(self) -> bool:
        found = self._process()
        if found is None or self._spec.pause:
            return self._paused
        try:
            return found.status() == psutil.STATUS_STOPPED
        except psutil.Error:
            return False

    def wait(self, timeout_s: float) -> int | None:
        """None: the exit status is not known, because it is not a child process."""
        return None

    def start(self) -> None:
        """Start it, and wait until it runs. Raises StartFailure."""
        if not self._spec.start:
            raise StartFailure(f"broker {self._broker_id} does not run, and --nodes has no 'start' for it")
        # In the background of a shell that ends at once: it may be the broker itself, which must not be our child.
        subprocess.run(
            ["/bin/sh", "-c", '"$@" &', "sh", *shlex.split(self._spec.start)],
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            check=True,
            timeout=COMMAND_S,
        )
        if not until(self.is_running, START_S):
            raise StartFailure(
                f"broker {self._broker_id} does not run {START_S:g} s after its start command: {self._spec.start}"
            )

    def _do(self, what: str, number: int) -> None:
        """Run its command, or else send a signal to the process of the pid file."""
        if getattr(self._spec, what):
            if (status := self._run(what)) != 0:
                raise OSError(f"broker {self._broker_id}: '{getattr(self._spec, what)}' exited with status {status}")
        elif (found := self._process()) is not None:
            signal_quietly(found, number)

    def _run(self, what: str) -> int:
        argv = shlex.split(getattr(self._spec, what))
        done = subprocess.run(
            argv, env=_environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_S, check=False
        )
        return done.returncode

    def _process(self) -> psutil.Process | None:
        if not self._spec.pid_file:
            return None
        try:
            return psutil.Process(int(Path(self._spec.pid_file).read_text().split()[0]))
        except (OSError, ValueError, IndexError, psutil.Error):
            return None


@dataclass(frozen=True, slots=True)
class ForeignNodes:
    """All nodes. A broker that the file does not describe counts as running."""

    processes: Mapping[int, NodeProcess] = field(default_factory=dict)

    @property
    def known(self) -> frozenset[int]:
        return frozenset(self.processes)

    @classmethod
    def of(cls, path: str | None) -> Self:
        """From the file; none without one. Raises NodesError."""
        if path is None:
            return cls()
        try:
            return cls({number: NodeProcess(number, spec) for number, spec in parse(read_text(Path(path))).items()})
        except (DocumentError, NodesError) as error:
            raise NodesError(f"--nodes {path}: {error}") from error

    def process(self, broker_id: int) -> NodeProcess:
        return self.processes.get(broker_id) or NodeProcess(broker_id, NodeSpec())

    def start(self, broker_id: int) -> None:
        """Start a broker that is dead. Blocks; raises StartFailure."""
        self.process(broker_id).start()


def parse(text: str) -> dict[int, NodeSpec]:
    """The brokers of a file; ``commands`` hold for all ``nodes``, ``{id}`` stands for the broker. Raises NodesError."""
    try:
        whole = load_yaml(text)
    except DocumentError as error:
        raise NodesError(str(error)) from error
    if not isinstance(whole, dict) or not isinstance(whole.get("nodes"), dict) or not whole["nodes"]:
        raise NodesError("it needs 'nodes', which maps each broker's id to its pid_file or commands")
    if unknown := set(whole) - {"nodes", "commands"}:
        raise NodesError(f"it has no {min(map(str, unknown))!r}; it takes nodes and commands")
    shared = _fields("commands", whole.get("commands"))
    found: dict[int, NodeSpec] = {}
    for number, own in whole["nodes"].items():
        if not isinstance(number, int) or isinstance(number, bool):
            raise NodesError(f"nodes: {number!r} is not a broker's id")
        said = {
            name: value.replace("{id}", str(number))
            for name, value in (shared | _fields(f"nodes.{number}", own)).items()
        }
        spec = NodeSpec(**said)
        if not spec.pid_file and not spec.alive:
            raise NodesError(f"nodes.{number}: without a pid_file it needs 'alive', which exits with 0 while it runs")
        missing = [name for name in ("kill", "pause", "resume") if not spec.pid_file and not getattr(spec, name)]
        if missing:
            raise NodesError(f"nodes.{number}: without a pid_file it needs {', '.join(map(repr, missing))}")
        if not spec.start:
            raise NodesError(f"nodes.{number}: it needs 'start', because a broker that was killed must come back")
        found[number] = spec
    return found


def _fields(where: str, given: Any) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise NodesError(f"{where} must be a mapping with some of {', '.join(FIELDS)}")
    for name, value in given.items():
        if name not in FIELDS:
            raise NodesError(f"{where} has no {name!r}; it takes {', '.join(FIELDS)}")
        if not isinstance(value, str) or not value.strip():
            raise NodesError(f"{where}.{name} must be text, not {value!r}")
    return dict(given)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(_MARKS)}
