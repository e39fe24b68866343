"""Simulations from the command line: one seed with its event log, a failing one shrunk, or many with a progress line.

    .venv/bin/python -m tests.simulation.run --seed N [--moves 0,3] [--log FILE] [--story BATCH]
    .venv/bin/python -m tests.simulation.run --shrink N [--log FILE] [--story BATCH]
    .venv/bin/python -m tests.simulation.run --count 10000 [--first N] [--workers N] [--corpus]

Each with [--steps N] [--rules REMOVAL] [--client PLANT]. Exit status 1 if anything was found.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from tests.simulation.batch_story import story, watched
from tests.simulation.case import Case, told
from tests.simulation.corpus import FILE, LEAST_SEEDS, Harvest, form, kept
from tests.simulation.plants import PLANTS
from tests.simulation.pool import Tally, outcomes
from tests.simulation.removals import REMOVALS
from tests.simulation.shrink import shrink

#: Failing seeds that are shown at the end, and that are shrunk if nothing else is said.
SHOWN, SHRUNK = 10, 3
PROGRESS_S = 5.0


def run_one(case: Case, log: Path | None, of: str | None) -> int:
    """``of`` is the batch whose story is told, if any."""
    with watched() if of else nullcontext([]) as seen:
        outcome = told(case)
    if log is not None:
        log.write_text(outcome.text)
    sys.stdout.write(f"{case.topology}\n{len(outcome.text.splitlines())} events\n")
    if of:
        sys.stdout.write(story(of, seen, outcome.text))
    for name, text in outcome.findings:
        sys.stdout.write(f"{name}: {text}\n")
    sys.stdout.write("nothing was found\n" if not outcome.findings else f"{case.line}\n")
    return 1 if outcome.findings else 0


def run_shrunk(case: Case, log: Path | None, of: str | None) -> int:
    """Shrink it if it fails; the log and the story are those of what is left."""
    outcome = told(case)
    if not outcome.findings:
        sys.stdout.write("nothing was found\n")
        return 0
    sys.stderr.write(f"seed {case.seed}: {len(outcome.moves)} moves, {outcome.findings[0][0]}\n")
    shrunk = shrink(case, outcome, _show_trial)
    sys.stdout.write(f"{shrunk}\n")
    return run_one(shrunk.case, log, of) if log is not None or of else 1


def _show_trial(number: int, case: Case, is_same: bool) -> None:
    moves = ",".join(map(str, case.moves or ())) or "none"
    sys.stderr.write(f"trial {number}: {'fails' if is_same else 'does not'} with {moves}\n")


def run_many(cases: list[Case], workers: int, shrunk: int, until_found: bool, harvest: Harvest | None) -> int:
    """All of them, or until something is found. ``harvest`` is told what the clean ones reached."""
    tally = Tally()
    show = _shower(len(cases))
    for done in outcomes(cases, workers):
        tally.add(done)
        show(tally)
        if done.findings:
            if until_found:
                break
        elif harvest is not None:
            harvest.add(done.case.seed, done.coverage)
    for what, times in sorted(tally.coverage.items()):
        sys.stdout.write(f"{times:9d} {what}\n")
    for case, findings, _ in tally.failed[:SHOWN]:
        name, text = findings[0]
        sys.stdout.write(f"seed {case.seed}: {len(findings)} findings, {name}: {text}\n    {case.line}\n")
    for done in tally.failed[:shrunk]:
        run_shrunk(done.case, None, None)
    if harvest is not None:
        _write_corpus(harvest)
    sys.stdout.write(f"{tally.seeds} seeds, {len(tally.failed)} failed\n")
    return 1 if tally.failed else 0


def _write_corpus(harvest: Harvest) -> None:
    before, chosen = kept(), harvest.chosen()
    if chosen is None:
        sys.stdout.write(f"the corpus stays as it is: {LEAST_SEEDS} seeds show what is rare\n")
        return
    FILE.write_text(form(chosen))
    new = {thing for things in chosen.values() for thing in things} - {each for old in before.values() for each in old}
    sys.stdout.write(f"the corpus has {len(chosen)} seeds; new in it: {'; '.join(sorted(new)) or 'nothing'}\n")


def _shower(count: int) -> Callable[[Tally], None]:
    began = shown = time.monotonic()
    told_of = 0

    def show(tally: Tally) -> None:
        nonlocal shown, told_of
        for case, findings, _ in tally.failed[told_of:]:
            sys.stderr.write(f"seed {case.seed} failed: {findings[0][0]}\n")
        told_of = len(tally.failed)
        now = time.monotonic()
        if now - shown >= PROGRESS_S or tally.seeds == count:
            shown = now
            rate = tally.seeds / (now - began)
            sys.stderr.write(f"{tally.seeds} of {count} seeds, {rate:.1f}/s, {len(tally.failed)} failed\n")

    return show


def _numbers(text: str) -> tuple[int, ...]:
    return () if text == "none" else tuple(int(each) for each in text.split(","))


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.simulation.run", description="Simulate a cluster, seed by seed.")
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--seed", type=int, help="one seed")
    one.add_argument("--shrink", type=int, metavar="SEED", help="find the fewest moves with which this seed fails")
    parser.add_argument("--moves", type=_numbers, help="of one seed only the moves with these numbers: 0,3,7, or none")
    parser.add_argument("--log", type=Path, help="write the event log of one seed to this file")
    parser.add_argument("--story", metavar="BATCH", help="tell what became of one batch: a value of it, or t-0@17")
    parser.add_argument("--count", type=int, default=200, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--until-found", action="store_true", help="end with the first seed that fails")
    parser.add_argument("--corpus", action="store_true", help=f"write {FILE.name} again: begin with its seeds")
    parser.add_argument("--shrunk", type=int, default=SHRUNK, help="how many failing seeds are shrunk (%(default)s)")
    parser.add_argument("--steps", type=int, help="moves of a seed, instead of 3 to 8")
    parser.add_argument("--rules", choices=sorted(REMOVALS), help="run without this rule")
    parser.add_argument("--client", choices=sorted(PLANTS), help="run with this bug in the clients")
    given = parser.parse_args()

    def case(seed: int) -> Case:
        return Case(seed, given.steps, given.moves, given.rules, given.client)

    if given.shrink is not None:
        return run_shrunk(case(given.shrink), given.log, given.story)
    if given.seed is not None:
        return run_one(case(given.seed), given.log, given.story)
    seeds, harvest = list(range(given.first, given.first + given.count)), None
    # What is not as it should be, or not as the gate tells it, shows nothing of a seed.
    if given.corpus and case(0) == Case(0):
        corpus = list(kept())
        harvest = Harvest(corpus)
        seeds = [*corpus, *(seed for seed in seeds if seed not in corpus)]
    return run_many([case(seed) for seed in seeds], given.workers, given.shrunk, given.until_found, harvest)


if __name__ == "__main__":
    sys.exit(main())
