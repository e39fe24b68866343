"""Whether a run directory holds the run of a cell, and its verdict the judgment of that run. Judges nothing itself.

A sweep that is resumed finds directories by the names of its cells. What lies there may be of another version of the
matrix, of another sweep, or copied: its verdict says nothing about the cell.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace

from chaos.experiment.asked import Asked
from chaos.experiment.command_line import words
from chaos.experiment.errors import ExperimentError
from chaos.experiment.recorded import as_asked
from chaos.schedules.model import Schedule, to_yaml
from chaos.sweeps.model import Cell
from verifier.evidence import seal
from verifier.evidence.run_directory import RunDirectory, read_json


def is_run_of(cell: Cell, directory: RunDirectory) -> bool:
    """Whether the run was asked what the cell asks, apart from where it is written and judged."""
    try:
        return is_asked_by(cell, directory.read_run().get("experiment", {}))
    except (OSError, ValueError, AttributeError):
        return False


def is_asked_by(cell: Cell, experiment: Mapping[str, object]) -> bool:
    """The same, by the ``experiment`` of its ``run.json``."""
    try:
        asked = as_asked(experiment)
    except ExperimentError:
        return False
    played = None if asked.schedule is None else asked.schedule.schedule
    own = cell.schedule or (None if cell.asked.schedule is None else cell.asked.schedule.schedule)
    return _words(asked, played) == _words(cell.asked, own)


def question(cell: Cell) -> str:
    """What the cell asks, as a digest: cells of one name may ask for other loads, faults and times on another day."""
    own = cell.schedule or (None if cell.asked.schedule is None else cell.asked.schedule.schedule)
    return hashlib.sha256(json.dumps(_words(cell.asked, own)).encode()).hexdigest()[:16]


def _words(asked: Asked, schedule: Schedule | None) -> tuple[list[str], str]:
    """What asks for the run again; the schedule by its content, wherever its file is."""
    return words(replace(asked, schedule=None)), "" if schedule is None else to_yaml(schedule)


def is_verdict_on(directory: RunDirectory) -> bool:
    """Whether ``verdict.json`` was made of the evidence that is there, if it names a seal."""
    try:
        named = read_json(directory.verdict_json).get("stats", {}).get("seal")
        return named is None or named == seal.read(directory).digest
    except (OSError, ValueError, AttributeError):
        return False
