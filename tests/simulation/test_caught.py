"""Rules taken away and bugs planted: the oracle sees each, in a seed that is clean without it.

The seeds stand in ``caught.txt``; ``caught.py`` finds them again. ``docs/simulation.md`` says what the removals are.
"""

from __future__ import annotations

import pytest

from tests.simulation.case import told
from tests.simulation.caught import FILE, Caught, form, known, telling
from tests.simulation.plants import PLANTS
from tests.simulation.removals import REMOVALS
from tests.simulation.test_seeds import SEEDS

CAUGHT = known()
#: Those of the 40 whose seeds take longest, half of the time of all: 3.5 to 9 s each.
DEAR = frozenset(
    (
        "leave-names-unsynced", "keep-the-log-start", "forget-a-failed-role", "commit-in-memory",
        "fetch-unstable-offsets", "end-in-memory", "do-not-resume", "add-in-memory",
    )
)  # fmt: skip


def test_each_has_its_seed() -> None:
    """No removal and no plant is left unproved, and none has the name of another."""
    assert {each.name for each in CAUGHT} == set(REMOVALS) | set(PLANTS)
    assert set(REMOVALS).isdisjoint(PLANTS)
    assert form(CAUGHT) == FILE.read_text()
    assert {each.name for each in CAUGHT} > DEAR


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "caught",
    [pytest.param(each, id=each.name, marks=[pytest.mark.full] * (each.name in DEAR)) for each in CAUGHT],
)
def test_without_the_rule_it_is_found(caught: Caught) -> None:
    """The oracle names the anomaly that the rule, or the correct client, protects from."""
    assert caught.finding in told(caught.case, caught.finding).names


def test_with_the_rule_each_of_their_seeds_is_told() -> None:
    """It is the rule that makes the difference: with it, ``test_seeds.test_nothing_is_found`` finds nothing in them."""
    assert {each.seed for each in CAUGHT} <= set(SEEDS)


def test_what_says_most_is_noted() -> None:
    """Nothing that any failure brings with it, if there is anything else."""
    assert telling({"unavailable", "lost-write", "leftover"}) == "lost-write"
    assert telling({"unavailable"}) == "unavailable"
