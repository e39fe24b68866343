"""The nemesis: what each seed draws, and that every move can be drawn by some."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

from cluster.seams.randomness import derive
from tests.simulation.nemesis.base import FACTORS, Move, Nemesis, draw
from tests.simulation.nemesis.catalogue import MOVES
from tests.simulation.story import tell
from tests.simulation.topology import Topology, topology
from tests.simulation.world import World
from tests.support.virtual_time import run

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


#: (virtual time, number of the move's task, what it drew)
Draw = tuple[float, str, float]


def draws(kept: set[int] | None) -> list[Draw]:
    """What the moves of a seed draw that do nothing else: at once, later, and in the background."""
    found: list[Draw] = []

    async def later(nemesis: Nemesis) -> None:
        await asyncio.sleep(0.3)
        found.append((asyncio.get_running_loop().time(), "later", nemesis.random.random()))

    async def move(nemesis: Nemesis) -> None:
        found.append((asyncio.get_running_loop().time(), "at once", nemesis.random.random()))
        nemesis.in_background("later", lambda: later(nemesis))

    async def main() -> None:
        world: Any = Mock(World, topology=replace(topology(3), steps=6), events=Mock())
        world.background = lambda work, name: asyncio.get_running_loop().create_task(work(), name=name)
        nemesis = Nemesis(world, Mock(), {"a": Move(move, 1), "b": Move(move, 2)}, kept)
        await nemesis.run()
        await nemesis.heal()

    run(main())
    return found


def test_a_move_that_is_left_out_shifts_no_draw_of_the_others() -> None:
    """Neither what they draw nor when, whichever is left out."""
    whole = draws(None)
    assert len(whole) == len({drawn for _, _, drawn in whole}) == 12
    alone = [draws({number}) for number in range(6)]
    assert sorted(each for one in alone for each in one) == sorted(whole)
    assert sorted(draws({0, 2, 3, 5})) == sorted(alone[0] + alone[2] + alone[3] + alone[5])
    assert draws(set()) == []


def test_a_story_without_some_moves_is_the_same_until_the_first_of_them() -> None:
    """The moves keep their numbers and their times."""
    whole, part = tell(5), tell(5, kept={0, 1})
    assert [each.number for each in whole.moves] == [0, 1, 2]
    assert part.moves == whole.moves[:2]
    before, _, _ = whole.text.partition(f"move 2 {whole.moves[2].name}")
    assert part.text.startswith(before.rpartition("\n")[0])
    assert "move 0" in part.text
    assert "move 2" not in part.text
