"""Watches a cluster that is up: keeps its state file present and up to date, and reports brokers that exit.

Owns the messages, and that each is printed once. Does not own the state or how it is written (``up``).
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from pathlib import Path

from chaos.commands.up_state import BROKER_LOG
from chaos.conductor.deployment import OUTPUT, Deployment
from cluster.process.one_line import reason
from verifier.evidence.run_directory import RunDirectory


class StateWatch:
    """``written`` is the state in the file. ``write`` writes the current state and returns it."""

    def __init__(
        self,
        deployment: Deployment,
        path: Path,
        written: Mapping[str, object],
        state: Callable[[], Mapping[str, object]],
        write: Callable[[], Mapping[str, object]],
        note: Callable[[str], None],
    ) -> None:
        self._deployment = deployment
        self._path = path
        self._written = written
        self._state = state
        self._write = write
        self._note = note
        self._dead: set[int] = set()
        self._is_refused = False

    def look(self) -> None:
        """Check once. A failure to write is reported when it first happens, and writing is tried again each time."""
        try:
            if self._state() != self._written or not self._path.exists():
                self._written = self._write()
            self._is_refused = False
        except OSError as error:
            if not self._is_refused:
                self._note(f"warning: {self._path} does not tell the present state: {reason(error)}")
            self._is_refused = True
        for broker_id in self._deployment.broker_ids:
            process = self._deployment.process(broker_id)
            if not process.is_running() and process.pid not in self._dead:
                self._dead.add(process.pid)
                logs = " and ".join(map(str, logs_of(RunDirectory(self._path.parent).node(broker_id))))
                self._note(f"broker {broker_id} {how_ended(process.wait(0))}; its log: {logs}")


def how_ended(code: int | None) -> str:
    """How a broker ended, in words. A kill by a run with ``--nodes`` cannot be distinguished from any other kill."""
    if code is not None and code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended (exit status {code})"


def logs_of(node: Path) -> list[Path]:
    """The broker's log and, if the process printed something, as in a crash, the file with its output."""
    output = node / OUTPUT
    has_more = output.is_file() and output.stat().st_size > 0
    return [node / BROKER_LOG, *([output] if has_more else [])]
