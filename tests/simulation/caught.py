"""Caught: for each rule that can be taken away and each bug that can be planted, a seed that shows it.

Owns the file ``caught.txt``, and the command that finds the seeds again when the code has changed what seeds do:

    .venv/bin/python -m tests.simulation.caught [--most 2000] [--workers N] [NAME ...]

A seed that still shows its anomaly stays; else those of the corpus are tried first, and then others in their order. The
number of seeds that were tried stands in the file too; 0 if the seed was not found by trying one after the other. With
its rule, each of them is told by the gate (``test_seeds.py``).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.simulation.case import Case, told
from tests.simulation.corpus import gate
from tests.simulation.plants import PLANTS
from tests.simulation.pool import outcomes
from tests.simulation.removals import REMOVALS
from tests.simulation.shrink import CONSEQUENCES

FILE = Path(__file__).parent / "caught.txt"
HEADER = (
    "# Removal or plant, a seed that shows it, what is found then, seeds tried. Written by tests.simulation.caught."
)
GATE, MOST = 200, 2000


class Caught(NamedTuple):
    """``finding`` is the name of one of those that the seed shows."""

    name: str
    seed: int
    finding: str
    tried: int

    @property
    def case(self) -> Case:
        return case(self.name, self.seed)


def case(name: str, seed: int) -> Case:
    """A seed without this rule, or with this bug in the clients."""
    return Case(seed, removed=name) if name in REMOVALS else Case(seed, client=name)


def form(caught: list[Caught]) -> str:
    """The file's text."""
    return "\n".join([HEADER, *(" ".join(map(str, each)) for each in sorted(caught))]) + "\n"


def parse(text: str) -> list[Caught]:
    """A file's text read back. Raises ``ValueError``."""
    header, *lines = text.splitlines()
    if header != HEADER:
        raise ValueError(f"the first line must be {HEADER!r}")
    fields = [line.split() for line in lines]
    return [Caught(name, int(seed), finding, int(tried)) for name, seed, finding, tried in fields]


def known() -> list[Caught]:
    """Those of the file."""
    return parse(FILE.read_text())


def telling(names: set[str]) -> str:
    """Of what was found, what says most: not what any failure brings with it."""
    return min(names - CONSEQUENCES or names)


def seeds(most: int) -> Iterator[int]:
    """Those of the corpus and the first others, which are known to be clean, and then more."""
    first = gate(GATE)
    yield from first[:most]
    before = frozenset(first)
    yield from (seed for seed in range(most) if seed not in before)


def find(name: str, most: int, workers: int) -> Caught | None:
    """The first of ``most`` seeds that shows it, or None."""
    done = outcomes((case(name, seed) for seed in seeds(most)), workers)
    try:
        for tried, (shown, findings, _) in enumerate(done, 1):
            if findings:
                return Caught(name, shown.seed, telling({found for found, _ in findings}), tried)
        return None
    finally:
        done.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.simulation.caught", description="Find the seeds of removals again.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="removals and plants; all if none is named")
    parser.add_argument("--most", type=int, default=MOST, help="seeds that are tried of each (%(default)s)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    found_before = {each.name: each for each in known()}
    missing = []
    for name in given.names or sorted((*REMOVALS, *PLANTS)):
        before = found_before.get(name)
        if before is not None and before.finding in told(before.case).names:
            continue
        found = find(name, given.most, given.workers)
        if found is None:
            missing.append(name)
            found_before.pop(name, None)
            sys.stdout.write(f"{name}: not found in {given.most} seeds\n")
        else:
            found_before[name] = found
            sys.stdout.write(f"{name}: seed {found.seed}, {found.finding}, {found.tried} tried\n")
        FILE.write_text(form(list(found_before.values())))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
