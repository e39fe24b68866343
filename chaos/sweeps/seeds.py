"""The sweep ``seeds``: the default run of ``gapless run`` with every seed. Owns its matrix; does not run it."""

from __future__ import annotations

from chaos.experiment.asked import Asked
from chaos.experiment.swarmed import renamed
from chaos.sweeps.model import Cell, Sweep, Wanted

NAME = "seeds"
SUMMARY = "the default run with one seed after another (10 seeds of 40 s, --faults basic); all must be valid"

TIME_LIMIT_S = 40.0
RATE = 1_500
SEEDS = tuple(range(1, 11))
PROFILE = "chaos"


def build(wanted: Wanted) -> Sweep:
    """A cell for each seed."""
    cells = [
        Cell(
            {"client": wanted.client, "seed": str(seed)},
            renamed(
                Asked(
                    seed=seed,
                    name=NAME,
                    time_limit_s=wanted.time_limit_or(TIME_LIMIT_S),
                    client=wanted.client,
                    rate=wanted.rate or RATE,
                    faults=wanted.faults,
                    profile=wanted.profile or PROFILE,
                    swarm=wanted.swarm,
                    defects=wanted.defects,
                )
            )[0],
        )
        for seed in wanted.seeds or SEEDS
    ]
    return Sweep(NAME, SUMMARY, "seed", tuple(cells))
