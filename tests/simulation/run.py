"""Simulations from the command line: one seed with its event log, or many with a progress line.

    .venv/bin/python -m tests.simulation.run --seed N [--rules REMOVAL] [--client PLANT] [--log FILE]
    .venv/bin/python -m tests.simulation.run --count 10000 [--first N] [--workers N]

Exit status 1 if anything was found.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from tests.simulation.plants import PLANTS, planted
from tests.simulation.pool import Tally, reproduce, run_seeds
from tests.simulation.removals import REMOVALS
from tests.simulation.story import tell
from tests.simulation.topology import topology

#: Failing seeds that are shown at the end.
SHOWN = 10
PROGRESS_S = 5.0


def run_one(seed: int, removed: str | None, log: Path | None) -> int:
    outcome = tell(seed, REMOVALS.get(removed or ""))
    if log is not None:
        log.write_text(outcome.text)
    sys.stdout.write(f"{topology(seed)}\n{len(outcome.text.splitlines())} events\n")
    for name, text in outcome.findings:
        sys.stdout.write(f"{name}: {text}\n")
    sys.stdout.write("nothing was found\n" if not outcome.findings else f"{reproduce(seed, removed)}\n")
    return 1 if outcome.findings else 0


def run_many(first: int, count: int, removed: str | None, workers: int) -> int:
    began = shown = time.monotonic()
    told = 0

    def progress(tally: Tally) -> None:
        nonlocal shown, told
        for seed, findings in tally.failed[told:]:
            sys.stderr.write(f"seed {seed} failed: {findings[0][0]}\n")
        told = len(tally.failed)
        now = time.monotonic()
        if now - shown >= PROGRESS_S or tally.seeds == count:
            shown = now
            rate = tally.seeds / (now - began)
            sys.stderr.write(f"{tally.seeds} of {count} seeds, {rate:.1f}/s, {len(tally.failed)} failed\n")

    tally = run_seeds(range(first, first + count), removed, workers, progress)
    for what, times in sorted(tally.coverage.items()):
        sys.stdout.write(f"{times:9d} {what}\n")
    for seed, findings in tally.failed[:SHOWN]:
        name, text = findings[0]
        sys.stdout.write(f"seed {seed}: {len(findings)} findings, {name}: {text}\n    {reproduce(seed, removed)}\n")
    sys.stdout.write(f"{tally.seeds} seeds, {len(tally.failed)} failed\n")
    return 1 if tally.failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.simulation.run", description="Simulate a cluster, seed by seed.")
    parser.add_argument("--seed", type=int, help="one seed")
    parser.add_argument("--log", type=Path, help="write its event log to this file")
    parser.add_argument("--count", type=int, default=200, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rules", choices=sorted(REMOVALS), help="run without this rule")
    parser.add_argument("--client", choices=sorted(PLANTS), help="one seed with this bug in its clients")
    arguments = parser.parse_args()
    if arguments.seed is not None:
        with planted(arguments.client):
            return run_one(arguments.seed, arguments.rules, arguments.log)
    return run_many(arguments.first, arguments.count, arguments.rules, arguments.workers)


if __name__ == "__main__":
    sys.exit(main())
