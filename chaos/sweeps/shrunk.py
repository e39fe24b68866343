"""Shrinks the invalid runs of a sweep with ``gapless shrink``, one after the other.

Owns which runs are shrunk, how many minutes each gets, and the line about the result. Does not own how a run is shrunk
(``chaos.shrinking``). A sweep that finds a bug usually finds it often, so of several runs with the same anomalies only
the first is shrunk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from chaos.conductor.child_runs import ChildRuns
from chaos.conductor.progress import Progress
from chaos.shrinking.smaller_run import TryCount
from chaos.sweeps.directory import SHRUNK, SweepDirectory
from chaos.sweeps.model import Cell, Sweep
from chaos.sweeps.outcome import CellOutcome
from cluster.seams.clock import Clock
from cluster.seams.units import seconds_of_ms
from verifier.evidence.how_many import how_many
from verifier.evidence.run_directory import read_json

#: The most tries for each invalid run.
MOST_RUNS = 40
#: The least time for a run. With less, a search would not get beyond its first tries.
LEAST_MINUTES = 3

#: (the run's directory, where to write, minutes) -> the command that shrinks it.
ShrinkCommand = Callable[[Path, Path, int], list[str]]


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The outcome of shrinking one run, which had ``events_before`` faults.

    ``play`` are the arguments that repeat the smallest run that failed, empty if none failed. It has ``events`` faults
    and ``seconds`` seconds of load. ``before`` counts tries of the original run, ``after`` those of the smallest one.
    ``not_smaller`` says why the smallest run is the original one, "" if it is smaller.
    """

    events_before: int
    events: int
    seconds: float
    before: TryCount
    after: TryCount
    play: tuple[str, ...]
    not_smaller: str = ""

    def __str__(self) -> str:
        if not self.play:
            return f"not shrunk: repeated, it failed in {self.before}"
        if self.not_smaller:
            return f"not shrunk: {self.not_smaller}; the whole run failed in {self.before}"
        what = f"{self.events} of {how_many(self.events_before, 'fault')} and {self.seconds:g} s of load"
        again = f"failed in {self.after}" if self.after.tries else "failed when it was found, and was not tried again"
        return f"shrunk to {what}, which {again}; the whole run failed in {self.before}"


def _tries(told: Mapping[str, int]) -> TryCount:
    return TryCount(int(told["tries"]), int(told["failed"]), int(told.get("without_verdict", 0)))


def shrunk_of(directory: SweepDirectory, cell: Cell) -> Shrunk | None:
    """The outcome of shrinking this cell, from its ``shrink.json``; None if that is missing or unreadable."""
    try:
        whole = read_json(directory.shrunk(cell) / "shrink.json")
        best = whole["best"]
        events_before, before, after = int(whole["events_before"]), _tries(whole["before"]), _tries(whole["after"])
        if best is None:
            return Shrunk(events_before, 0, 0.0, before, after, ())
        play, seconds = tuple(map(str, best["play"])), float(best["time_limit_s"])
        not_smaller = str(whole.get("not_smaller") or "")
        return Shrunk(events_before, int(best["events"]), seconds, before, after, play, not_smaller)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def to_shrink(sweep: Sweep, outcomes: Mapping[str, CellOutcome]) -> list[Cell]:
    """The cells with invalid runs; of those with the same anomalies, only the first."""
    first: dict[frozenset[str], Cell] = {}
    for cell in sweep.cells:
        outcome = outcomes[cell.name]
        if outcome.status == "judged" and outcome.verdict == "invalid" and outcome.forbidden:
            first.setdefault(frozenset(outcome.forbidden), cell)
    return list(first.values())


def shrink_red(
    cells: Sequence[Cell],
    directory: SweepDirectory,
    runs: ChildRuns,
    clock: Clock,
    progress: Progress,
    command: ShrinkCommand,
    minutes: int,
) -> None:
    """Shrink these cells; each gets an equal share of the remaining ``minutes``.

    A KeyboardInterrupt ends the current one in order and is raised again.
    """
    begun_ms = clock.monotonic_ms()
    left = [cell for cell in cells if not directory.shrunk(cell).exists()]
    for number, cell in enumerate(left):
        left_s = minutes * 60 - seconds_of_ms(clock.monotonic_ms() - begun_ms)
        share = int(left_s / 60 / (len(left) - number))
        if number and share < LEAST_MINUTES:
            share = int(left_s / 60)
        if number and share < LEAST_MINUTES:
            progress.note(f"--shrink {minutes}: no time for {how_many(len(left) - number, 'more red run')}")
            return
        share = max(1, share)
        progress.phase("shrink", f"{cell.name}, for at most {share} min")
        argv = command(directory.run(cell).path, directory.shrunk(cell), share)
        log = directory.path / "logs" / f"{SHRUNK}-{cell.name}.log"
        said = _always(f"at most {share} min; {how_many(len(left) - number - 1, 'more red run')} to shrink")
        runs.conduct(f"{SHRUNK} {cell.name}", argv, log, said)
        done = shrunk_of(directory, cell)
        progress.note(f"  {done or f'not shrunk; see {log}'}")


def _always(text: str) -> Callable[[float], str]:
    return lambda _elapsed_s: text
