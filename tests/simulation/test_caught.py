"""Rules taken away and bugs planted: the oracle sees each, in a seed that is clean without it.

The seeds stand in ``caught.txt``; ``caught.py`` finds them again. ``docs/simulation.md`` says how many seeds it took.
"""

from __future__ import annotations

import pytest

from tests.simulation.case import told
from tests.simulation.caught import FILE, Caught, form, parse, telling
from tests.simulation.plants import PLANTS
from tests.simulation.removals import REMOVALS
from tests.simulation.story import tell
from tests.simulation.test_seeds import SEEDS

CAUGHT = parse(FILE.read_text())


def test_each_has_its_seed() -> None:
    """No removal and no plant is left unproved, and none has the name of another."""
    assert {each.name for each in CAUGHT} == set(REMOVALS) | set(PLANTS)
    assert set(REMOVALS).isdisjoint(PLANTS)
    assert form(CAUGHT) == FILE.read_text()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("caught", CAUGHT, ids=lambda each: each.name)
def test_without_the_rule_it_is_found(caught: Caught) -> None:
    """The oracle names the anomaly that the rule, or the correct client, protects from."""
    assert caught.finding in told(caught.case).names


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", sorted({each.seed for each in CAUGHT} - set(SEEDS)))
def test_with_the_rule_the_seed_is_clean(seed: int) -> None:
    """It is the rule that makes the difference. ``test_seeds.test_nothing_is_found`` tells the others with it."""
    assert tell(seed).findings == ()


def test_what_says_most_is_noted() -> None:
    """Nothing that any failure brings with it, if there is anything else."""
    assert telling({"unavailable", "lost-write", "leftover"}) == "lost-write"
    assert telling({"unavailable"}) == "unavailable"
