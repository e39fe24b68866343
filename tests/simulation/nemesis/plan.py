"""Plan: the moves of a seed, numbered, and when each begins.

Owns that draw. A seed can be told again with some of its moves left out: the others keep their numbers, begin at their
times and draw from generators of their own (``Nemesis.random``), so that nothing changes but what those moves did.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cluster.seams.randomness import Random

PAUSES_S = (0.0, 0.1, 0.5, 1.0, 2.0)


class Planned(NamedTuple):
    """``at_s`` counts from when the nemesis begins, in virtual seconds."""

    number: int
    at_s: float
    name: str


def plan(random: Random, weights: Mapping[str, int], steps: int) -> tuple[Planned, ...]:
    """``steps`` moves in order, numbered from 0."""
    at_s, planned = 0.0, []
    for number in range(steps):
        at_s += random.choice(PAUSES_S)
        [name] = random.choices([*weights], [*weights.values()])
        planned.append(Planned(number, at_s, name))
    return tuple(planned)
