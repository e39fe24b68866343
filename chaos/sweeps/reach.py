"""What the runs of a sweep reached together, and which of them are kept since they reached something new. Pure.

A seed is worth running again if it came somewhere that no run before it had come to: to an election of another kind, a
longer truncation, more leader epochs. What counts as new is ``chaos.reached``'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from chaos.reached import Reached, told, total
from chaos.sweeps.model import Cell, Sweep
from chaos.sweeps.outcome import CellOutcome


@dataclass(frozen=True, slots=True)
class Kept:
    """A run that reached something new: where it is in the matrix, what was new, and the command that repeats it."""

    cell: str
    seed: int
    new: tuple[str, ...]
    repro: str

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "new": list(self.new)}


def together(sweep: Sweep, outcomes: Mapping[str, CellOutcome]) -> Reached:
    """All runs of the sweep."""
    return total(outcomes[cell.name].reached for cell in _judged(sweep, outcomes))


def kept(sweep: Sweep, outcomes: Mapping[str, CellOutcome]) -> list[Kept]:
    """The runs that reached something that none before them had, in the order in which cells are run."""
    known: frozenset[str] = frozenset()
    found = []
    for cell in sorted(_judged(sweep, outcomes), key=lambda each: each.turn):
        outcome = outcomes[cell.name]
        if new := outcome.reached.marks() - known:
            known |= new
            found.append(Kept(cell.name, cell.asked.seed, tuple(told(new)), outcome.repro))
    return found


def _judged(sweep: Sweep, outcomes: Mapping[str, CellOutcome]) -> list[Cell]:
    return [cell for cell in sweep.cells if outcomes[cell.name].status == "judged"]
