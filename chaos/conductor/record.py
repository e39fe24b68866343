"""Writes ``run.json`` when a run starts, and again at each change that must survive a crash.

Owns when the file is written. Does not own its fields (``verifier.evidence.run_model``).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from cluster.process.supervisor import ChildRecord
from cluster.seams.clock import Clock
from verifier.evidence import seal
from verifier.evidence.run_directory import RunDirectory, write_json_atomic
from verifier.evidence.run_model import ChildProcess, PhaseSpan, RunModel


class RunRecord:
    """The ``run.json`` of one run. Creating the object writes the file. Methods may be called from any thread."""

    def __init__(self, directory: RunDirectory, model: RunModel, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock
        # Children are started, and recorded, in threads.
        self._lock = threading.RLock()
        self._is_sealed = False
        self.model = model
        self.write()

    def write(self) -> None:
        write_json_atomic(self._directory.run_json, self.model.to_json())

    def update(self, **changes: Any) -> None:
        """Change fields of the model and write it."""
        with self._lock:
            self.model = replace(self.model, **changes)
            self.write()

    def problem(self, text: str) -> None:
        """Add a reason why the evidence is incomplete. The verdict can then not be valid."""
        with self._lock:
            self.update(problems=[*self.model.problems, text])

    def children(self, records: Sequence[ChildRecord]) -> None:
        """Write which processes the supervisor has started, before the run waits for any of them."""
        now = [ChildProcess(child.name, child.pid, child.creation_time, child.exit_code) for child in records]
        self.update(**{"judging" if self._is_sealed else "children": now})

    def seal(self) -> None:
        """Seal the evidence at the end of the run. Raises ``OSError``.

        Afterwards, only those fields of ``run.json`` change that describe the judging.
        """
        self._is_sealed = True
        seal.take(self._directory)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Record the start and end of a phase. The end of a phase that an error or an interrupt leaves stays open."""
        span = PhaseSpan(name, self._clock.monotonic_ns())
        with self._lock:
            self.update(phases=[*self.model.phases, span])
        yield
        closed = replace(span, end_ns=self._clock.monotonic_ns())
        with self._lock:
            self.update(phases=[closed if each == span else each for each in self.model.phases])
