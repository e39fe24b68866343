"""Checks whether a run directory has the run of a cell, and whether its verdict was made from that run's evidence.

A resumed sweep finds run directories by the names of its cells. Such a directory may come from another version of the
matrix or from another sweep, or be a copy; then its verdict says nothing about the cell. Judges nothing.
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
    """Whether the run has the cell's settings and schedule, no matter in which directory and where it is judged."""
    try:
        return is_asked_by(cell, directory.read_run().get("experiment", {}))
    except (OSError, ValueError, AttributeError):
        return False


def is_asked_by(cell: Cell, experiment: Mapping[str, object]) -> bool:
    """The same, for the ``experiment`` of a ``run.json``."""
    try:
        asked = as_asked(experiment)
    except ExperimentError:
        return False
    played = None if asked.schedule is None else asked.schedule.schedule
    own = cell.schedule or (None if cell.asked.schedule is None else cell.asked.schedule.schedule)
    return _words(asked, played) == _words(cell.asked, own)


def question(cell: Cell) -> str:
    """A digest of the cell's settings and schedule, since a cell may keep its name when these change."""
    own = cell.schedule or (None if cell.asked.schedule is None else cell.asked.schedule.schedule)
    return hashlib.sha256(json.dumps(_words(cell.asked, own)).encode()).hexdigest()[:16]


def _words(asked: Asked, schedule: Schedule | None) -> tuple[list[str], str]:
    """The command-line arguments that request the run, and the content of its schedule ("" without one)."""
    return words(replace(asked, schedule=None)), "" if schedule is None else to_yaml(schedule)


def is_verdict_on(directory: RunDirectory) -> bool:
    """Whether ``verdict.json`` was made from the sealed evidence in the directory. True if it names no seal."""
    try:
        named = read_json(directory.verdict_json).get("stats", {}).get("seal")
        return named is None or named == seal.read(directory).digest
    except (OSError, ValueError, AttributeError):
        return False
