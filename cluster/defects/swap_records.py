"""swap-records: store the first two records of a batch in each other's place.

A calibration of the verifier rather than a bug of someone: order within a batch is the least that a log keeps.
"""

from __future__ import annotations

from random import Random

from cluster.broker.rules import Rules
from cluster.defects.altered import altering
from cluster.defects.firings import Firings
from cluster.protocol.records import Record

NAME = "swap-records"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A batch of one record has nothing to swap."""
    return altering(NAME, _swapped, rules, probability, random, firings)


def _swapped(records: list[Record]) -> list[Record] | None:
    if len(records) < 2:
        return None
    first, second, *rest = records
    return [second._replace(offset=first.offset), first._replace(offset=second.offset), *rest]
