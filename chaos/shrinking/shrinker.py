"""Shrinks a stored run in a directory: runs each candidate of the search as a ``gapless run`` of its own.

Owns the tries and their record, ``shrink.json``, which is rewritten after each. What is tried is
``chaos.shrinking.search``'s, and the schedule and the test ``chaos.shrinking.regression``'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from chaos.conductor.child_runs import ChildRuns
from chaos.conductor.progress import Progress
from chaos.experiment.asked import Asked
from chaos.experiment.command_line import words
from chaos.experiment.record_size import check_record_size
from chaos.experiment.resolve import resolve
from chaos.replay.stored_run import StoredRun
from chaos.schedules.model import to_yaml
from chaos.shrinking.failure import SameFailure, found
from chaos.shrinking.scale import scaled, words_of
from chaos.shrinking.search import Search
from chaos.shrinking.smaller_run import SearchEnd, SmallerRun, TryCount, TryOutcome
from cluster.seams.clock import Clock
from cluster.seams.units import seconds_of_ms
from verifier.evidence.how_many import how_many
from verifier.evidence.run_directory import (
    RunDirectory,
    empty_directory,
    new_directory,
    read_json,
    write_json_atomic,
    write_text_atomic,
)

SCHEMA = 1
NAME = "shrink"


@dataclass(frozen=True, slots=True)
class ShrinkDirectory:
    """``results/shrink/TIME/``: the names of what shrinking writes."""

    path: Path

    @classmethod
    def create(cls, base: Path, now: datetime) -> ShrinkDirectory:
        """Make ``base/shrink/<UTC time>``. Raises ``OSError``."""
        return cls(new_directory(base / NAME, now)).prepare()

    @classmethod
    def at(cls, path: Path) -> ShrinkDirectory:
        """The directory that was asked for, made if absent. Raises ``OSError``, also if it is not empty."""
        return cls(empty_directory(path)).prepare()

    def prepare(self) -> ShrinkDirectory:
        """Make the subdirectories."""
        for name in ("tries", "schedules", "logs"):
            (self.path / name).mkdir(exist_ok=True)
        return self

    @property
    def shrink_json(self) -> Path:
        return self.path / "shrink.json"

    @property
    def schedule_yaml(self) -> Path:
        return self.path / "schedule.yaml"

    def test_py(self, anomaly: str) -> Path:
        return self.path / f"test_{anomaly.lower().replace('-', '_')}.py"

    def run(self, number: int) -> RunDirectory:
        return RunDirectory(self.path / "tries" / f"{number:03d}")

    def schedule(self, number: int) -> Path:
        return self.path / "schedules" / f"{number:03d}.yaml"

    def log(self, number: int) -> Path:
        return self.path / "logs" / f"{number:03d}.log"


@dataclass(frozen=True, slots=True)
class Try:
    """One try as it went."""

    stage: str
    candidate: SmallerRun
    outcome: TryOutcome
    asked: str
    found: dict[str, int]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """For ``shrink.json``."""
        return {
            "stage": self.stage,
            "events": list(self.candidate.events),
            "pace": self.candidate.pace.name.lower(),
            "load": dict(self.candidate.load),
            "asked": self.asked,
            "outcome": self.outcome.value,
            "anomalies": self.found,
            "seconds": round(self.seconds, 1),
        }


@dataclass(frozen=True, slots=True)
class ShrinkLimits:
    """The most runs in total, how many of them measure how often it fails (before, and after), and the minutes."""

    max_runs: int
    tries: int
    minutes: int | None = None


class Shrinker:
    """``command`` makes the arguments that start a run, ``remove`` removes a run directory.

    ``failure`` says how a try must fail. With ``limits.minutes``, the search ends in time for the tries that measure
    how often the result fails, judging by how long earlier tries took. A try that is interrupted is thrown away.
    """

    def __init__(
        self,
        of: StoredRun,
        failure: SameFailure,
        search: Search,
        directory: ShrinkDirectory,
        runs: ChildRuns,
        clock: Clock,
        progress: Progress,
        command: Callable[[Asked], list[str]],
        remove: Callable[[Path], None],
        limits: ShrinkLimits,
    ) -> None:
        self._of, self._failure, self.search = of, failure, search
        self._directory, self._runs = directory, runs
        self._clock, self._progress = clock, progress
        self._command, self._remove, self._limits = command, remove, limits
        self.tries: list[Try] = []
        #: The run directory of the newest failure of a candidate; those before it are removed.
        self._kept: RunDirectory | None = None

    def __repr__(self) -> str:
        return f"<Shrinker {self._directory.path}, {len(self.tries)} tries>"

    def run(self) -> None:
        """Try until the search has enough. KeyboardInterrupt ends the present try well and is raised."""
        stage, begun_ms = "", self._clock.monotonic_ms()
        self.record()
        while (candidate := self.search.candidate) is not None:
            if self._is_late(seconds_of_ms(self._clock.monotonic_ms() - begun_ms)):
                self._end_search()
                continue
            if self.search.stage != stage:
                stage = self.search.stage
                self._progress.phase(stage, _STAGES[stage])
            done = self._try(candidate)
            self.search.told(done.outcome)
            self.record()

    def _end_search(self) -> None:
        """Look no further, and say what follows: the tries that confirm what was found, if anything was."""
        what = "try the run again" if self.search.stage == "before" else "look for a smaller run"
        again = self.search.enough()
        follows = "; the search ends"
        if again:
            tries, minutes = how_many(again, "try", "tries"), again * fmean(self._took()) / 60
            follows += (
                f". To see how often the smallest run fails, at most {tries} of it follow, about {minutes:.0f} min"
            )
        self._progress.note(f"--minutes {self._limits.minutes}: no time left to {what}{follows}")

    def asked(self, candidate: SmallerRun, schedule: Path) -> Asked:
        """What a candidate asks for."""
        return replace(scaled(self._of.asked, self._of.schedule, candidate, schedule), name=NAME)

    def record(self) -> dict[str, Any]:
        """Write what is known now; the object of ``shrink.json``."""
        best = self.search.best
        whole = {
            "schema": SCHEMA,
            "run": str(self._of.directory.path),
            "anomalies": list(self._failure.names),
            "runs": self.search.runs,
            "max_runs": self._limits.max_runs,
            "not_smaller": None if self.search.end is SearchEnd.SMALLER else self.search.end.value,
            "events_before": len(self._of.schedule.injections),
            "before": _counted(self.search.before),
            "after": _counted(self.search.after),
            "best": None if best is None else self._best_json(best),
            "tries": [each.to_json() for each in self.tries],
        }
        write_json_atomic(self._directory.shrink_json, whole)
        return whole

    def _best_json(self, best: SmallerRun) -> dict[str, Any]:
        asked = self.asked(best, self._directory.schedule_yaml)
        events = len(best.events)
        return {
            "events": events,
            "time_limit_s": asked.time_limit_s,
            "load": dict(best.load),
            "asked": words_of(asked),
            "play": words(asked),
        }

    def _try(self, candidate: SmallerRun) -> Try:
        number = len(self.tries) + 1
        path, directory = self._directory.schedule(number), self._directory.run(number)
        asked = replace(self.asked(candidate, path), out=str(directory.path))
        what, started_ms = words_of(asked), self._clock.monotonic_ms()
        anomalies: dict[str, int] = {}
        try:
            check_record_size(resolve(asked)[0])
        except ValueError as error:
            came, said = TryOutcome.IMPOSSIBLE, f"{TryOutcome.IMPOSSIBLE.value}: {error}"
        else:
            self._progress.note(f"try {self.search.runs + 1}/{self.search.max_runs}: {what}")
            if asked.schedule is not None:
                write_text_atomic(path, to_yaml(asked.schedule.schedule))
            try:
                self._runs.conduct(f"try {number}", self._command(asked), self._directory.log(number), self._left)
            except KeyboardInterrupt:
                self._remove(directory.path)
                raise
            verdict = _verdict(directory)
            came, anomalies = self._failure.outcome(verdict), {} if verdict is None else found(verdict)
            named = ", ".join(f"{name} {count:,}" for name, count in anomalies.items())
            said = f"{came.value}: {named}" if named else came.value
            self._keep(directory, failed=came is TryOutcome.FAILED)
        self._progress.note(f"  {said}")
        seconds = seconds_of_ms(self._clock.monotonic_ms() - started_ms)
        done = Try(self.search.stage, candidate, came, what, anomalies, seconds)
        self.tries.append(done)
        return done

    def _keep(self, directory: RunDirectory, *, failed: bool) -> None:
        """The newest failure stays for people; the evidence of sixty runs would fill a disk."""
        if failed:
            directory, self._kept = self._kept or directory, directory
        if directory is not self._kept:
            self._remove(directory.path)

    def _took(self) -> list[float]:
        return [each.seconds for each in self.tries if each.outcome is not TryOutcome.IMPOSSIBLE]

    def _is_late(self, spent_s: float) -> bool:
        """Whether there is no time for another try and, once smaller runs are tried, for those that confirm one."""
        minutes = self._limits.minutes
        if minutes is None or self.search.stage == "after" or not (took := self._took()):
            return False
        needed = 1 if self.search.stage == "before" else 1 + self._limits.tries
        return spent_s + needed * fmean(took) > minutes * 60

    def _left(self, elapsed_s: float) -> str:
        """What is left after the current try, which has taken ``elapsed_s`` so far."""
        took = self._took()
        left = self.search.max_runs - self.search.runs - 1
        left_s = max(0.0, fmean(took) - elapsed_s) + left * fmean(took) if took else 0.0
        most = f", at most {left_s / 60:.0f} min" if took else ""
        best = self.search.best
        smallest = "" if best is None else f"; the smallest so far has {how_many(len(best.events), 'fault')}"
        return f"{how_many(left, 'run')} left after it{most}{smallest}"


_STAGES = {
    "before": "how often the whole run fails again",
    "faults": "which of its faults are needed",
    "duration": "how long it must be",
    "load": "how much load it needs",
    "after": "how often fails what is left",
}


def _verdict(directory: RunDirectory) -> dict[str, Any] | None:
    try:
        return read_json(directory.verdict_json)
    except (OSError, ValueError):
        return None


def _counted(tally: TryCount) -> dict[str, int]:
    return {"tries": tally.runs, "failed": tally.failures, "without_verdict": tally.unresolved}
