"""A stored run as something that can be played again: reads its files, refuses what cannot be replayed.

Owns the refusals, each one line that names the thing and the fix. What is made of the files is
``chaos.replay.happened``'s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from chaos.experiment.asked import Asked
from chaos.experiment.errors import ExperimentError
from chaos.experiment.forms import ScheduleFile
from chaos.experiment.recorded import recorded
from chaos.replay.happened import happened
from chaos.schedules.model import Injection, Schedule, ScheduleError, from_yaml
from cluster.seams.units import ns_of_seconds
from loadgen.documents import DocumentError, read_text
from verifier.evidence.how_many import how_many
from verifier.evidence.phases import CHAOS
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel


class NoReplay(Exception):
    """The run cannot be played again; one line says why, and what to do instead."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """``asked`` is what the run was asked, with what happened in it as its schedule; ``notes`` are for people."""

    directory: RunDirectory
    model: RunModel
    asked: Asked
    schedule: Schedule
    notes: tuple[str, ...]
    load_started_ns: int

    def begins_ns(self, injection: Injection) -> int:
        """When an injection of the schedule was due there."""
        return self.load_started_ns + ns_of_seconds(injection.at_s)


def read_stored(directory: RunDirectory, *, with_faults: bool = True) -> StoredRun:
    """The run in this directory. Raises NoReplay.

    ``with_faults``: a run without any is refused; without, its schedule is empty.
    """
    model = RunModel.from_json(directory.read_run())
    try:
        asked = recorded(model.experiment)
    except ExperimentError as error:
        raise NoReplay(f"{directory.path}: {error}") from error
    load_started_ns = load_started(directory, model)
    planned, entries = _planned(directory), _entries(directory)
    try:
        what = happened(planned, entries, load_started_ns)
    except (ValueError, TypeError, KeyError) as error:
        raise NoReplay(f"{directory.faults_jsonl} and schedule.yaml do not fit together: {error}") from error
    if with_faults and not what.schedule.injections:
        none = "was asked for no faults" if not planned.injections else "broke nothing"
        raise NoReplay(f"{directory.path} {none}, so there is nothing to replay; run it again with: {model.repro}")
    schedule = what.schedule.seeded(asked.seed)
    file = ScheduleFile(directory.faults_jsonl, schedule)
    ends_s = max((each.at_s + each.duration_s for each in schedule.injections), default=0.0)
    limit_s = max(asked.time_limit_s, float(math.ceil(ends_s)))
    # a run that was judged later, with others, is judged at its own end when it is repeated
    played = replace(asked, schedule=file, faults=None, overlap=False, time_limit_s=limit_s, unjudged=False)
    notes = tuple(
        f"left out: {how_many(count, 'planned fault')} that {why} in that run" for why, count in what.without.items()
    )
    return StoredRun(directory, model, played, schedule, notes, load_started_ns)


def load_started(directory: RunDirectory, model: RunModel) -> int:
    """When the load of a run flowed and its schedule began, in monotonic ns. Raises NoReplay if it never did."""
    phase = model.phase(CHAOS)
    if phase is None:
        raise NoReplay(f"{directory.path} ended before its load flowed; run it again with: {model.repro}")
    return phase.start_ns


def _planned(directory: RunDirectory) -> Schedule:
    try:
        return from_yaml(read_text(directory.schedule_yaml))
    except (DocumentError, ScheduleError) as error:
        raise NoReplay(f"{directory.schedule_yaml}: {error}; restore the original") from error


def _entries(directory: RunDirectory) -> list[Mapping[str, Any]]:
    try:
        return list(directory.read_faults())
    except (OSError, ValueError) as error:
        raise NoReplay(f"{directory.faults_jsonl} cannot be read: {error}; restore the original") from error


def is_schedule(path: Path) -> bool:
    """Whether a path is the file of a schedule, and not a run."""
    if not path.is_file():
        return False
    try:
        from_yaml(read_text(path))
    except (DocumentError, ScheduleError):
        return False
    return True
