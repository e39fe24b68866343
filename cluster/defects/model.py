"""A defect as an entry of the catalogue. Owns the shape alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings

#: (the rules, with which probability, what is drawn from, where firings are noted) -> the rules with the defect.
Plant = Callable[[Rules, float, Random, Firings], Rules]


@dataclass(frozen=True, slots=True)
class Defect:
    """One entry of the catalogue. ``takes_probability``: it may happen to a share of batches."""

    name: str
    doc: str
    plant: Plant
    takes_probability: bool
