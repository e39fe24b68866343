"""Sums up what the runs of a sweep reached, and lists the runs that reached something new. Pure.

A seed is worth repeating if its run reached something that no earlier run had: another kind of election, a longer
truncation, more leader epochs. Does not own what counts as reached (``chaos.reached``).
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
    """A run that reached something new. ``new`` lists this in words; ``repro`` is the command that repeats the run."""

    cell: str
    seed: int
    new: tuple[str, ...]
    repro: str

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "new": list(self.new)}


def together(sweep: Sweep, outcomes: Mapping[str, CellOutcome]) -> Reached:
    """What all judged runs of the sweep reached together."""
    return total(outcomes[cell.name].reached for cell in _judged(sweep, outcomes))


def kept(sweep: Sweep, outcomes: Mapping[str, CellOutcome]) -> list[Kept]:
    """The runs that reached something that no earlier run had, in the order in which cells run."""
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
