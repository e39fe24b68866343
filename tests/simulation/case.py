"""Case: what decides a simulation, and the line that runs it again.

Owns both. The same case gives the same event log, byte for byte, as long as the code is the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.simulation.plants import planted
from tests.simulation.removals import REMOVALS
from tests.simulation.story import Outcome, tell
from tests.simulation.topology import Topology, topology

PROGRAM = ".venv/bin/python -m tests.simulation.run"


@dataclass(frozen=True)
class Case:
    """One seed. ``steps`` moves instead of as many as it draws, and of them those numbered in ``moves`` alone, if these
    are given; without the rule ``removed``; with the bug ``client`` in the clients."""

    seed: int
    steps: int | None = None
    moves: tuple[int, ...] | None = None
    removed: str | None = None
    client: str | None = None

    @property
    def options(self) -> str:
        """What stands after the seed in the line."""
        given = {"steps": self.steps, "rules": self.removed, "client": self.client}
        options = "".join(f" --{name} {value}" for name, value in given.items() if value is not None)
        return options if self.moves is None else f"{options} --moves {','.join(map(str, self.moves)) or 'none'}"

    @property
    def line(self) -> str:
        """The line that runs it again."""
        return f"{PROGRAM} --seed {self.seed}{self.options}"

    @property
    def topology(self) -> Topology:
        drawn = topology(self.seed)
        return drawn if self.steps is None else replace(drawn, steps=self.steps)


def told(case: Case, until: str | None = None) -> Outcome:
    """Run it, to its end or to a finding of the name ``until``."""
    with planted(case.client):
        return tell(case.seed, REMOVALS.get(case.removed or ""), steps=case.steps, kept=case.moves, until=until)
