"""Planted bugs of our own clients: the oracle sees each in a seed that is clean without it, as those of brokers."""

from __future__ import annotations

import pytest

from tests.simulation.plants import PLANTS, planted
from tests.simulation.story import tell
from tests.simulation.test_seeds import SEEDS

#: plant -> a seed that shows it, and what is found then among other things
CAUGHT = {
    "a-timeout-is-success": (4, "lost-write"),
    "never-asks-again": (3, "unavailable"),
    "reads-again": (2, "poll-skip"),
    "restarts-in-flight": (38, "duplicate"),
    "retries-at-the-end": (10, "unavailable"),
}


def test_each_plant_has_its_seed() -> None:
    """No plant is left unproved, and each seed is clean without it (``test_seeds.test_nothing_is_found``)."""
    assert set(CAUGHT) == set(PLANTS)
    assert {seed for seed, _ in CAUGHT.values()} <= set(SEEDS)


@pytest.mark.parametrize("name", sorted(CAUGHT))
def test_a_client_with_the_bug_is_found(name: str) -> None:
    """The oracle names the anomaly."""
    seed, finding = CAUGHT[name]
    with planted(name):
        assert finding in tell(seed).names
