"""What may be tampered with and leave the run valid, each with its reason. Everything else must be noticed.

``SEALED``: of a run that is as it was left but for one thing. ``RESEALED``: of one that was sealed again afterwards, so
that the rules alone stand against it. An entry is a path's pattern and a test of what was done to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from verifier.evidence import seal
from verifier.evidence.run_directory import RunDirectory


class Equivalent(NamedTuple):
    """A file, whether this change of it changes nothing, and why."""

    pattern: str
    holds: Callable[[Path, Path], bool]
    reason: str


def _same_run(before: Path, after: Path) -> bool:
    try:
        digests = [seal.run_digest(json.loads((run / "run.json").read_text())) for run in (before, after)]
    except (OSError, ValueError):
        return False
    return digests[0] == digests[1]


def _same_seal(before: Path, after: Path) -> bool:
    try:
        return seal.read(RunDirectory(before)) == seal.read(RunDirectory(after))
    except (OSError, ValueError):
        return False


SEALED: tuple[Equivalent, ...] = (
    Equivalent("run.json", _same_run, "only fields that are written after the verdict, or blanks, changed"),
    Equivalent("seal.json", _same_seal, "the seal says the same"),
)


def equivalent(path: str, before: Path, after: Path, known: tuple[Equivalent, ...]) -> str | None:
    """Why this change need not be noticed; None if it must be."""
    return next((each.reason for each in known if fnmatch(path, each.pattern) and each.holds(before, after)), None)
