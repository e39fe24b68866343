"""The watch over a cluster that is up: its state file stays there and true, and a broker that ends is told of.

Owns what is said, and that it is said once. What the state is, and how it is written, is ``up``'s.
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
    """``written`` is the state that the file has; ``write`` writes the present one, and returns it."""

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
        """Look once. What the disk refuses is said when it begins, and tried again at each look."""
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
    """In words: who was killed had no part in it. A fault of a run with ``--nodes`` is not told from any other kill."""
    if code is not None and code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended (exit status {code})"


def logs_of(node: Path) -> list[Path]:
    """The broker's log, and beside it what the process printed, if it printed something, as a crash does."""
    output = node / OUTPUT
    has_more = output.is_file() and output.stat().st_size > 0
    return [node / BROKER_LOG, *([output] if has_more else [])]
