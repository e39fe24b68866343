"""Kills, pauses and starts the brokers of a cluster that gapless did not start, as ``--nodes`` says (docs/target.md).

Owns sending signals, running commands, and their time limits. Does not own the form of the file
(``chaos.conductor.nodes_file``). A broker that is started here is not a child of the run and outlives it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

import psutil

from chaos.conductor.nodes_file import COMMANDS, NodesError, NodeSpec, parse
from chaos.conductor.starting import StartFailure
from chaos.faults.breakable import ProcessLife
from cluster.process.one_line import reason
from cluster.process.processes import is_alive, signal_quietly, until
from loadgen.documents import DocumentError, read_text

COMMAND_S = 60.0
#: The limit for ``alive`` is shorter, because faults wait for it.
ALIVE_S = 5.0
SIGNAL_S = 5.0
START_S = 60.0
#: Exit statuses of shells and of ssh that mean that the command was not run. They say nothing about the broker.
_NOT_RUN = (126, 127, 255)
#: The prefix of the variables by which a Supervisor recognizes processes that it must end; commands do not get them.
_MARKS = "GAPLESS_"


class NodeLook(NamedTuple):
    """Whether a broker's process runs. ``doubt`` is a line on why that is not known, "" if it is."""

    life: ProcessLife
    doubt: str = ""


class NodeProcess:
    """``BrokerProcess`` for one broker. Every method may block.

    Those that run a command raise ``OSError`` if the command fails.
    """

    def __init__(self, broker_id: int, spec: NodeSpec) -> None:
        self._broker_id = broker_id
        self._spec = spec
        self._paused = False

    def __repr__(self) -> str:
        return f"NodeProcess(broker {self._broker_id})"

    @property
    def pid(self) -> int:
        """The process id; -1 if there is no pid file, or if it does not name a process."""
        found = self._process()
        return -1 if found is None else found.pid

    @property
    def spec(self) -> NodeSpec:
        """What the ``--nodes`` file says about this broker."""
        return self._spec

    def look(self) -> NodeLook:
        """Whether the broker runs: from its ``alive`` command, else from its pid file, else assumed."""
        if self._spec.alive:
            return self._run_alive()
        found = self._process()
        if found is not None:
            return NodeLook(ProcessLife.RUNS if is_alive(found) else ProcessLife.ENDED)
        return NodeLook(ProcessLife.ENDED if self._spec.pid_file else ProcessLife.RUNS)

    def is_running(self) -> bool:
        """Whether the broker is known to run."""
        return self.look().life is ProcessLife.RUNS

    def _run_alive(self) -> NodeLook:
        try:
            status = self._run("alive", ALIVE_S)
        except OSError as error:
            return NodeLook(ProcessLife.UNKNOWN, str(error))
        if status < 0 or status in _NOT_RUN:
            doubt = f"broker {self._broker_id}: '{self._spec.alive}' exited with status {status}"
            return NodeLook(ProcessLife.UNKNOWN, doubt)
        return NodeLook(ProcessLife.ENDED if status else ProcessLife.RUNS)

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
        """Return None: the exit status is not known, because the broker is not a child process."""
        return None

    def start(self) -> None:
        """Run the ``start`` command and wait until the broker runs. Raises StartFailure."""
        if not self._spec.start:
            raise StartFailure(f"broker {self._broker_id} does not run, and --nodes has no 'start' for it")
        # In the background of a shell that exits at once: the command may be the broker, which must not be our child.
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
            doubt = self.look().doubt
            raise StartFailure(
                f"broker {self._broker_id} {'is not known to' if doubt else 'does not'} run {START_S:g} s after its "
                f"start command: {self._spec.start}{f': {doubt}' if doubt else ''}"
            )

    def _do(self, what: str, number: int) -> None:
        """Run the command called ``what``; without one, send signal ``number`` to the process in the pid file.

        Raises ``OSError`` if the command cannot be run, fails, or takes too long.
        """
        if getattr(self._spec, what):
            if (status := self._run(what, COMMAND_S)) != 0:
                raise OSError(f"broker {self._broker_id}: '{getattr(self._spec, what)}' exited with status {status}")
        elif (found := self._process()) is not None:
            signal_quietly(found, number)

    def _run(self, what: str, timeout_s: float) -> int:
        """Run the command called ``what`` and return its exit status.

        Raises ``OSError``, with a message for the user, if the command cannot be run or takes too long.
        """
        command = getattr(self._spec, what)
        nothing = subprocess.DEVNULL
        try:
            # in its own session, so that everything it started can be killed with it
            started = subprocess.Popen(
                shlex.split(command), env=_environment(), stdin=nothing, stdout=nothing, stderr=nothing,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise OSError(f"broker {self._broker_id}: '{command}' cannot be run: {reason(error)}") from error
        try:
            return started.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise OSError(f"broker {self._broker_id}: '{command}' took longer than {timeout_s:g} s") from None
        finally:
            if started.returncode is None:
                os.killpg(started.pid, signal.SIGKILL)
                started.wait()

    def _process(self) -> psutil.Process | None:
        if not self._spec.pid_file:
            return None
        try:
            return psutil.Process(int(Path(self._spec.pid_file).read_text().split()[0]))
        except (OSError, ValueError, IndexError, psutil.Error):
            return None


@dataclass(frozen=True, slots=True)
class ForeignNodes:
    """All brokers of a ``--nodes`` file. A broker that the file does not describe counts as running."""

    processes: Mapping[int, NodeProcess] = field(default_factory=dict)
    path: str = ""

    @property
    def known(self) -> frozenset[int]:
        return frozenset(self.processes)

    @classmethod
    def of(cls, path: str | None) -> Self:
        """Read the file at ``path``; None means no file, so no broker is described. Raises NodesError."""
        if path is None:
            return cls()
        try:
            specs = parse(read_text(Path(path)))
        except (DocumentError, NodesError) as error:
            raise NodesError(f"--nodes {path}: {error}") from error
        return cls({number: NodeProcess(number, spec) for number, spec in specs.items()}, path)

    def check(self, broker_ids: Sequence[int]) -> None:
        """Check the file against the cluster, whose brokers are ``broker_ids``. Blocks.

        Raises NodesError if a program in it does not exist, or if a broker that is in the cluster does not run by what
        the file says.
        """
        try:
            for number, process in self.processes.items():
                for name in COMMANDS:
                    command = getattr(process.spec, name)
                    if command and shutil.which(program := shlex.split(command)[0]) is None:
                        raise NodesError(f"nodes.{number}.{name}: there is no command {program!r}")
            for number in broker_ids:
                look, spec = self.process(number).look(), self.process(number).spec
                if look.life is ProcessLife.UNKNOWN:
                    raise NodesError(f"{look.doubt}; 'alive' must tell whether the broker runs")
                if look.life is ProcessLife.ENDED:
                    told = f"alive command: {spec.alive!r}" if spec.alive else f"pid_file {spec.pid_file}"
                    raise NodesError(f"broker {number} does not run, says its {told}; but it is in the cluster")
        except NodesError as error:
            raise NodesError(f"--nodes {self.path}: {error}") from error

    def process(self, broker_id: int) -> NodeProcess:
        return self.processes.get(broker_id) or NodeProcess(broker_id, NodeSpec())

    def start(self, broker_id: int) -> None:
        """Start a dead broker. Blocks. Raises StartFailure."""
        self.process(broker_id).start()


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(_MARKS)}
