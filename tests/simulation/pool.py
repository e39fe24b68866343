"""Many seeds, over several processes.

Owns the distribution and the sum of what happened. Each process is a fresh interpreter (spawn) that does one seed after
the other; a worker that dies is an error of the run, not a clean seed.
"""

from __future__ import annotations

import gc
import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from tests.simulation.kept import Finding
from tests.simulation.removals import REMOVALS
from tests.simulation.story import tell

#: Seeds that are given to a worker at once.
CHUNK = 4


@dataclass
class Tally:
    """The sum over many seeds. ``failed`` are (seed, what was found)."""

    seeds: int = 0
    failed: list[tuple[int, tuple[Finding, ...]]] = field(default_factory=list)
    coverage: Counter[str] = field(default_factory=Counter)

    def add(self, seed: int, findings: tuple[Finding, ...], coverage: Counter[str]) -> None:
        self.seeds += 1
        self.coverage += coverage
        if findings:
            self.failed.append((seed, findings))


def _settle() -> None:
    """What a worker has loaded stays: no seed's garbage is looked for among it."""
    gc.freeze()


def _one(work: tuple[int, str | None]) -> tuple[int, tuple[Finding, ...], Counter[str]]:
    seed, removed = work
    outcome = tell(seed, REMOVALS.get(removed or ""))
    return seed, outcome.findings, outcome.coverage


def outcomes(
    seeds: Iterable[int], removed: str | None, workers: int
) -> Iterator[tuple[int, tuple[Finding, ...], Counter[str]]]:
    """(seed, findings, coverage) of each seed, in their order."""
    work = ((seed, removed) for seed in seeds)
    if workers == 1:
        yield from map(_one, work)
        return
    with multiprocessing.get_context("spawn").Pool(workers, _settle) as pool:
        yield from pool.imap(_one, work, CHUNK)


def run_seeds(
    seeds: Iterable[int], removed: str | None, workers: int, progress: Callable[[Tally], None] = lambda tally: None
) -> Tally:
    """Run them all."""
    tally = Tally()
    for outcome in outcomes(seeds, removed, workers):
        tally.add(*outcome)
        progress(tally)
    return tally


def reproduce(seed: int, removed: str | None = None) -> str:
    """The line that runs a seed again."""
    rules = "" if removed is None else f" --rules {removed}"
    return f".venv/bin/python -m tests.simulation.run --seed {seed}{rules}"
