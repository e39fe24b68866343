"""Many simulations, over several processes.

Owns the distribution and the sum of what happened. Each process is a fresh interpreter (spawn) that does one case after
the other; a worker that dies is an error of the run, not a clean seed.
"""

from __future__ import annotations

import gc
import multiprocessing
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.simulation.case import Case, told
from tests.simulation.oracle import Finding

#: Cases that are given to a worker at once.
CHUNK = 4


class Done(NamedTuple):
    """What became of one case, without its event log."""

    case: Case
    findings: tuple[Finding, ...]
    coverage: Counter[str]


@dataclass
class Tally:
    """The sum over many cases. ``failed`` are those in which something was found."""

    seeds: int = 0
    failed: list[Done] = field(default_factory=list)
    coverage: Counter[str] = field(default_factory=Counter)

    def add(self, done: Done) -> None:
        self.seeds += 1
        self.coverage += done.coverage
        if done.findings:
            self.failed.append(done)


def _settle() -> None:
    """What a worker has loaded stays: no seed's garbage is looked for among it."""
    gc.freeze()


def _one(case: Case) -> Done:
    outcome = told(case)
    return Done(case, outcome.findings, outcome.coverage)


def outcomes(cases: Iterable[Case], workers: int) -> Iterator[Done]:
    """That of each case, in their order. A caller that has seen enough closes the iterator."""
    if workers == 1:
        yield from map(_one, cases)
        return
    with multiprocessing.get_context("spawn").Pool(workers, _settle) as pool:
        yield from pool.imap(_one, cases, CHUNK)


def run_cases(cases: Iterable[Case], workers: int) -> Tally:
    """Run them all."""
    tally = Tally()
    for done in outcomes(cases, workers):
        tally.add(done)
    return tally
