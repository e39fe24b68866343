"""A defect as an entry of the catalogue. Owns the shape alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.seams.storage import Storage

#: (the rules, with which probability, what is drawn from, where firings are noted) -> the rules with the defect.
Plant = Callable[[Rules, float, Random, Firings], Rules]
#: The same for the storage.
PlantStorage = Callable[[Storage, float, Random, Firings], Storage]


def same_rules(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """For a defect that wraps only the storage."""
    return rules


def same_storage(storage: Storage, probability: float, random: Random, firings: Firings) -> Storage:
    """For a defect that wraps only the rules, as most do."""
    return storage


@dataclass(frozen=True, slots=True)
class Defect:
    """One entry of the catalogue. ``takes_probability``: it may happen to a share of batches, or of crashes."""

    name: str
    doc: str
    plant: Plant
    takes_probability: bool
    plant_storage: PlantStorage = same_storage
