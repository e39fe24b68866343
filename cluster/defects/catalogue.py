"""The catalogue of defects: their names, what they do in one line, and how a list of them is put into the rules.

Owns the syntax ``NAME[:probability]``. Does not own any defect.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.defects.of_producers import OF_PRODUCERS
from cluster.defects.of_replication import OF_REPLICATION
from cluster.defects.of_storage import OF_STORAGE
from cluster.defects.of_transactions import OF_TRANSACTIONS
from cluster.seams.storage import Storage


class DefectError(ValueError):
    """No such defect; the text says which ones exist."""


@dataclass(frozen=True, slots=True)
class DefectSpec:
    """A defect as asked for."""

    name: str
    probability: float = 1.0

    def __str__(self) -> str:
        return self.name if self.probability == 1.0 else f"{self.name}:{self.probability:g}"


CATALOGUE = {defect.name: defect for defect in (*OF_PRODUCERS, *OF_REPLICATION, *OF_STORAGE, *OF_TRANSACTIONS)}


def parse(text: str) -> DefectSpec:
    """``NAME`` or ``NAME:probability`` with 0 < probability <= 1. Raises ``DefectError``."""
    if "," in text:
        each = " ".join(f"--defect {part.strip()}" for part in text.split(","))
        raise DefectError(f"'{text}' names several defects; give each its own option: {each}")
    name, colon, share = text.strip().partition(":")
    defect = CATALOGUE.get(name)
    if defect is None:
        near = get_close_matches(name, CATALOGUE, n=1, cutoff=0.5)
        hint = f"did you mean '{near[0]}'?" if near else "'gapless list defects' shows all"
        raise DefectError(f"unknown defect '{name}'; {hint}")
    if not colon:
        return DefectSpec(name)
    if not defect.takes_probability:
        raise DefectError(f"defect '{name}' takes no probability")
    try:
        probability = float(share)
    except ValueError:
        probability = -1.0
    if not 0 < probability <= 1:
        raise DefectError(f"the probability of defect '{name}' must be above 0 and at most 1, not '{share}'")
    return DefectSpec(name, probability)


def with_defects(rules: Rules, specs: Iterable[DefectSpec], random: Random, firings: Firings) -> Rules:
    """The rules with these defects planted, in order."""
    for spec in specs:
        rules = CATALOGUE[spec.name].plant(rules, spec.probability, random, firings)
    return rules


def with_storage_defects(storage: Storage, specs: Iterable[DefectSpec], random: Random, firings: Firings) -> Storage:
    """The storage with those of these defects that wrap it, in order; without any it is the same."""
    for spec in specs:
        storage = CATALOGUE[spec.name].plant_storage(storage, spec.probability, random, firings)
    return storage
