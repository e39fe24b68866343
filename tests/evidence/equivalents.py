"""What may be tampered with and leave the run valid, each with its reason. Everything else must be noticed.

An entry is a path's pattern and a test of what was done to it. The rules see less of a
run that was sealed again afterwards: docs/verifier.md lists what they cannot see.
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

    name: str
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


def _only_beside(before: Path, after: Path) -> bool:
    """Byte by byte: everything is there and unchanged, and what is new is one file at the top, read by nobody."""
    old, new = _contents(before), _contents(after)
    added = new.keys() - old.keys() - seal.OUTPUTS
    return len(added) == 1 and "/" not in next(iter(added)) and all(new.get(name) == old[name] for name in old)


def _contents(run: Path) -> dict[str, bytes]:
    """Every file but what judging writes, and ZooKeeper's own."""
    found = {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file()}
    judged = {name for name in found if name in seal.OUTPUTS and name not in ("run.json", "seal.json")}
    judged |= {name for name in found if name.startswith(("anomalies/", "nodes/zookeeper/"))}
    return {name: data for name, data in found.items() if name not in judged}


def _unsealed(before: Path, after: Path) -> bool:
    """Byte by byte: every file of the evidence is as it was."""
    return _contents(before) == _contents(after)


SEALED: tuple[Equivalent, ...] = (
    Equivalent("run.json", "run.json", _same_run, "only fields that are written after the verdict, or blanks, changed"),
    Equivalent("seal.json", "seal.json", _same_seal, "the seal says the same"),
    Equivalent(
        "beside",
        "*",
        _only_beside,
        "a file was added at the top, where nothing is looked for; the sealed ones are whole",
    ),
    Equivalent(
        "unsealed", "*", _unsealed, "no evidence changed: verdict, reports, what goes on afterwards, ZooKeeper's files"
    ),
)


def equivalent(path: str, before: Path, after: Path, known: tuple[Equivalent, ...]) -> str | None:
    """Why this change need not be noticed; None if it must be."""
    return next((each.reason for each in known if fnmatch(path, each.pattern) and each.holds(before, after)), None)
