"""Runs that are judged together, and what is known of each on the way. Owns which ones may be, and these shapes.

Of a small run, starting a question costs Spark more than answering it, and it is one question for several runs as well
as for one (``verifier.run_checks.audit``). Judges nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from verifier.closing.closing import Closing
from verifier.deletions import Deletions
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel

if TYPE_CHECKING:
    from verifier.facts import Audit
    from verifier.run_checks import RunEvidence

#: As many and as large together: about as much as Spark takes for little evidence (``verifier.spark.settings``).
MOST_RUNS, MOST_BYTES = 20, 48 << 20


class Batch(NamedTuple):
    """Runs in a row, and the size of all of them."""

    directories: tuple[RunDirectory, ...]
    size_bytes: int


def batched(directories: Sequence[RunDirectory]) -> list[Batch]:
    """All of them in their order: those that are small enough together, others alone."""
    batches: list[Batch] = []
    for directory in directories:
        size_bytes = directory.size_bytes()
        if batches and len(batches[-1].directories) < MOST_RUNS and batches[-1].size_bytes + size_bytes <= MOST_BYTES:
            before = batches.pop()
            batches.append(Batch((*before.directories, directory), before.size_bytes + size_bytes))
        else:
            batches.append(Batch((directory,), size_bytes))
    return batches


@dataclass(frozen=True, slots=True)
class Examined:
    """A run and its files."""

    directory: RunDirectory
    run: RunModel
    evidence: RunEvidence

    @classmethod
    def of(cls, directory: RunDirectory, run: RunModel | None = None, name: str = "run") -> Examined:
        """Without what was deleted, which is not looked up yet. Raises ``ValueError`` or ``OSError``."""
        from verifier.run_checks import RunEvidence

        run = RunModel.from_json(directory.read_run()) if run is None else run
        return cls(directory, run, RunEvidence.of(directory, run, name, deletions=Deletions()))

    @property
    def is_empty(self) -> bool:
        """Whether it left nothing to ask about."""
        return not self.evidence.segments and not self.evidence.histories


@dataclass(frozen=True, slots=True)
class Judged:
    """What was found out about a run, its deletions looked up; its verdict is not drawn yet."""

    directory: RunDirectory
    run: RunModel
    evidence: RunEvidence
    found: Audit
    closing: Closing
