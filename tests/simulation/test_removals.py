"""Planted removals: the oracle sees it when a rule of the cluster is taken away, in a seed that is clean with the rule.

How many seeds it takes from any start was measured; ``docs/simulation.md`` has the table.
"""

from __future__ import annotations

import pytest

from tests.simulation.removals import REMOVALS
from tests.simulation.story import tell
from tests.simulation.test_seeds import SEEDS

#: removal -> a seed that shows it, and what is found then among other things
CAUGHT = {
    "keep-the-tail": (200, "log-divergence"),
    "cut-to-the-watermark": (80, "lost-write"),
    "acknowledge-early": (23, "lost-write"),
    "forget-on-failover": (1, "sequence-gap"),
    "no-controller-fencing": (52, "split-brain"),
    "keep-the-log-start": (260, "unavailable"),
    "forget-a-failed-role": (1633, "unavailable"),
}


def test_each_removal_has_its_seed() -> None:
    """No removal is left unproved."""
    assert set(CAUGHT) == set(REMOVALS)


@pytest.mark.parametrize("removed", sorted(CAUGHT))
def test_without_the_rule_it_is_found(removed: str) -> None:
    """The oracle names the anomaly that the rule protects from."""
    seed, name = CAUGHT[removed]
    assert name in tell(seed, REMOVALS[removed]).names


@pytest.mark.parametrize("seed", sorted({seed for seed, _ in CAUGHT.values()} - set(SEEDS)))
def test_with_the_rule_the_seed_is_clean(seed: int) -> None:
    """It is the rule that makes the difference. ``test_seeds.test_nothing_is_found`` tells the others with it."""
    assert tell(seed).findings == ()
