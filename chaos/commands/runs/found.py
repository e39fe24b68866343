"""Finds the runs below a directory. Owns which directories are runs, which are live, and what a row shows.

Judges nothing, and writes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.commands.runs.comparison import StoredPair
from chaos.sweeps.belonging import is_verdict_on
from verifier.evidence.run_directory import RunDirectory, read_json
from verifier.telling.result_lines import result_lines

#: The name of a run's directory, unless ``--out`` was given.
_OURS = re.compile(r"\d{8}T\d{6}Z-s(?P<seed>\d+)(-\d+)?\Z")
UNFINISHED, UNJUDGED = "unfinished", "no verdict"
#: The verdict that is shown for a run that is still being written.
LIVE = "live"
#: A run writes every second. If nothing was written for this long, it is not live anymore.
QUIET_S = 60.0
_UNITS = ("B", "KB", "MB", "GB", "TB")


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run. ``verdict`` is the recorded one, or says why this evidence has no verdict.

    ``anomalies`` and ``allowed`` are as in RESULT.
    """

    path: Path
    name: str
    seed: int
    started: str
    ended: str | None
    verdict: str
    anomalies: str
    allowed: str
    size_bytes: int

    @property
    def is_finished(self) -> bool:
        """Whether the run has ended and has a verdict, so that, according to its files, no process works on it."""
        return self.ended is not None and self.verdict not in (UNFINISHED, UNJUDGED, LIVE)

    @property
    def has_our_name(self) -> bool:
        """Whether its directory has a name that only gapless gives to runs."""
        match = _OURS.match(self.path.name)
        return match is not None and int(match["seed"]) == self.seed

    @property
    def when(self) -> str:
        """The time of its start in UTC, to the minute."""
        return self.started[:16].replace("T", " ")

    def to_json(self) -> dict[str, Any]:
        """The row for ``--json``."""
        return {
            "run": str(self.path),
            "name": self.name,
            "seed": self.seed,
            "started": self.started,
            "ended": self.ended,
            "verdict": self.verdict,
            "anomalies": self.anomalies,
            "allowed": self.allowed,
            "size_bytes": self.size_bytes,
        }


def runs_below(base: Path, now_s: float) -> list[RunRow]:
    """The runs of a results directory, the newest first: ``NAME/RUN``, or ``RUN``. Links are not followed.

    A sweep's cells are the sweep's. What cannot be read as a run is left out. ``now_s`` is the time as files have it.
    """
    rows = [row for path in _candidates(base) if (row := row_of(path, now_s)) is not None]
    return sorted(rows, key=lambda row: (row.started, str(row.path)), reverse=True)


def _candidates(base: Path) -> Iterator[Path]:
    for inner in _directories(base):
        if (inner / "run.json").is_file():
            yield inner
        elif not (inner / "sweep.json").exists():
            yield from (path for path in _directories(inner) if (path / "run.json").is_file())


def _directories(base: Path) -> Iterable[Path]:
    return sorted(path for path in base.iterdir() if path.is_dir() and not path.is_symlink()) if base.is_dir() else ()


def row_of(path: Path, now_s: float) -> RunRow | None:
    """The row of a run directory; None if its ``run.json`` is not that of a run."""
    directory = RunDirectory(path)
    try:
        run = directory.read_run()
        name, seed = str(run["name"]), int(run["seed"])
        started, ended = str(run["started"]), run.get("ended")
    except (OSError, ValueError, KeyError, TypeError):
        return None
    verdict, found = _verdict(directory, is_over=ended is not None)
    if verdict == UNFINISHED and written_lately(path, now_s):
        verdict = LIVE
    size_bytes = directory.size_bytes()
    return RunRow(
        path, name, seed, started, ended, verdict, found.get("anomalies", ""), found.get("allowed", ""), size_bytes
    )


def written_lately(directory: Path, now_s: float) -> bool:
    """Whether any file in the directory, or of the load, was written within the last ``QUIET_S``."""
    places = (directory, directory / "loadgen", directory / "history")
    files = (path for place in places if place.is_dir() for path in (place, *place.iterdir()))
    try:
        return any(now_s - _changed_s(path) < QUIET_S for path in files)
    except OSError:  # it was removed, or must not be read
        return False


def _changed_s(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def _verdict(directory: RunDirectory, *, is_over: bool) -> tuple[str, Mapping[str, str]]:
    if not is_verdict_on(directory):
        return (UNJUDGED if is_over else UNFINISHED), {}
    try:
        recorded = read_json(directory.verdict_json)
        if recorded["verdict"] == "unknown" and not recorded.get("stats"):
            # the verdict only says why the run was not judged (--no-verify, an interrupt), since it has no counts
            return (UNJUDGED if is_over else UNFINISHED), {}
        words = result_lines(recorded, repro="")[0].split()[2:]
        return str(recorded["verdict"]), dict(word.split("=", 1) for word in words)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return (UNJUDGED if is_over else UNFINISHED), {}


def stored_pair(directory: RunDirectory) -> StoredPair:
    """``run.json`` and ``verdict.json`` of a run, to be compared.

    A run without a verdict gives an empty second one. If the verdict was made of other evidence, it says only that.
    Raises ``OSError``, ``ValueError``.
    """
    run = directory.read_run()
    try:
        recorded = read_json(directory.verdict_json)
    except FileNotFoundError:
        return run, {}
    return run, recorded if is_verdict_on(directory) else {"verdict": UNJUDGED}


def size(size_bytes: float) -> str:
    """A size in a suitable unit, with at most three digits: ``41 MB``."""
    for unit in _UNITS:
        if size_bytes < 999.5 or unit == _UNITS[-1]:
            break
        size_bytes /= 1000
    return f"{size_bytes:.1f} {unit}" if unit != "B" and size_bytes < 9.95 else f"{size_bytes:.0f} {unit}"
