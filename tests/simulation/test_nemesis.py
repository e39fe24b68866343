"""The nemesis: what each seed draws, and that every move can be drawn by some."""

from __future__ import annotations

from collections import Counter

from cluster.seams.randomness import derive
from tests.simulation.nemesis.base import FACTORS, draw
from tests.simulation.nemesis.catalogue import MOVES
from tests.simulation.topology import Topology, topology

SEEDS = 300


def weights(seed: int) -> tuple[Topology, dict[str, int]]:
    drawn = topology(seed)
    return drawn, draw(derive(seed, "moves"), MOVES, drawn)


def test_each_seed_draws_its_own_moves() -> None:
    """Every move is in some seeds and not in others; what loses data only where the topic allows it."""
    drawn = [weights(seed) for seed in range(SEEDS)]
    times = Counter(name for _, moves in drawn for name in moves)
    assert set(times) == set(MOVES)
    assert all(times[name] < SEEDS * 0.8 for name in MOVES)
    assert all("leave-behind" not in moves for seed, moves in drawn if not seed.is_unclean)
    assert any("leave-behind" in moves for seed, moves in drawn if seed.is_unclean)


def test_the_same_seed_draws_the_same() -> None:
    """And a weight is one of the move's own, a few times over."""
    assert weights(7) == weights(7)
    for _, moves in map(weights, range(20)):
        assert moves
        assert all(weight / MOVES[name].weight in FACTORS for name, weight in moves.items())
