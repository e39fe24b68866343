"""``run.json`` during a run: written first, rewritten at each change worth surviving a crash.

Owns when it is written. The shape is ``verifier.evidence.run_model``'s.
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
    """The run's own account about itself."""

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
        """Something kept the run from being complete evidence; it can then not be valid."""
        with self._lock:
            self.update(problems=[*self.model.problems, text])

    def children(self, records: Sequence[ChildRecord]) -> None:
        """What the supervisor started, before any of it is waited for."""
        now = [ChildProcess(child.name, child.pid, child.creation_time, child.exit_code) for child in records]
        self.update(**{"judging" if self._is_sealed else "children": now})

    def seal(self) -> None:
        """The run is over: write down what its evidence is now. Raises ``OSError``.

        From here on, only the fields of ``run.json`` that tell about its judgment change.
        """
        self._is_sealed = True
        seal.take(self._directory)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time one phase. One that is left by an error or an interrupt keeps its end open."""
        span = PhaseSpan(name, self._clock.monotonic_ns())
        with self._lock:
            self.update(phases=[*self.model.phases, span])
        yield
        closed = replace(span, end_ns=self._clock.monotonic_ns())
        with self._lock:
            self.update(phases=[closed if each == span else each for each in self.model.phases])
