"""The sweep ``scenarios``: every named scenario with every seed.

Owns its matrix. Does not own the scenarios (``chaos.scenarios``).
"""

from __future__ import annotations

from dataclasses import replace

from chaos.experiment.experiment import WARMUP_S
from chaos.experiment.told import told_by
from chaos.scenarios.catalogue import scenarios
from chaos.sweeps.model import EFFECTS, SEED, Cell, Sweep, Wanted

NAME = "scenarios"
SUMMARY = "every named scenario: what a correct cluster must survive, and the controls that show what it is spared"

SEEDS = (1,)
NOTES = ("Claimed is what the settings of a scenario allow and its schedule is meant to bring about.",)


def build(wanted: Wanted) -> Sweep:
    """A cell for each scenario and seed. The scenario sets the load, the settings, and the time for its schedule."""
    cells = []
    for each in scenarios():
        claims = tuple(effect.name for effect in EFFECTS if effect.check in each.allowed)
        for seed in wanted.seeds or SEEDS:
            more = {} if wanted.rate is None else {"rate": wanted.rate}
            asked = told_by(each.name, seed, name=NAME, client=wanted.client, **more)
            limit_s = wanted.time_limit_or(asked.time_limit_s)
            # an impossible limit is passed on and refused later; one below the schedule's length shortens the run
            if limit_s <= WARMUP_S or limit_s > asked.time_limit_s:
                asked = replace(asked, time_limit_s=limit_s)
            cells.append(Cell({"scenario": each.name, SEED: str(seed)}, asked, claims=claims))
    return Sweep(NAME, SUMMARY, "scenario", tuple(cells), notes=NOTES)
