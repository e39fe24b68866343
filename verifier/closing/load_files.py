"""What load processes left beside their histories and series: the last status, Locust's own counts and its clock.

Owns how these files are read. Other code wrote them than the histories, so that a history that was changed contradicts
them; ``verifier.completeness`` says where.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass

from verifier.evidence.bounded import lines
from verifier.evidence.run_directory import RunDirectory, read_json
from verifier.evidence.series import SeriesPoint

#: What Locust calls the requests that are records; the others are requests to brokers.
_RECORD = "RECORD"
#: Locust adds some hundred bytes a second.
MOST_CSV_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class LoadFiles:
    """``status`` is the last one; ``counted`` the records that Locust counted as acknowledged; ``wall_s`` the first and
    the last second of Locust's history, by the wall clock (Unix time). None: there is no such file, or nothing in it.
    """

    status: SeriesPoint | None = None
    counted: int | None = None
    wall_s: tuple[int, int] | None = None


def load_files(directory: RunDirectory, process: str) -> LoadFiles:
    """Of one process. Raises ``OSError``, ``ValueError``, ``TypeError`` or ``KeyError`` for what cannot be read."""
    status = directory.status_json(process)
    return LoadFiles(
        SeriesPoint.from_json(read_json(status)) if status.exists() else None,
        _counted(directory, process),
        _wall_s(directory, process),
    )


def _counted(directory: RunDirectory, process: str) -> int | None:
    rows = [row for row in _rows(directory, f"{process}_stats.csv") if row["Type"] == _RECORD]
    if not rows:
        return None
    return sum(int(row["Request Count"]) - int(row["Failure Count"]) for row in rows)


def _wall_s(directory: RunDirectory, process: str) -> tuple[int, int] | None:
    times = [int(row["Timestamp"]) for row in _rows(directory, f"{process}_stats_history.csv")]
    return (min(times), max(times)) if times else None


def _rows(directory: RunDirectory, name: str) -> list[dict[str, str]]:
    path = directory.loadgen_dir / name
    if not path.exists():
        return []
    try:
        return list(csv.DictReader(line.decode() for line in lines(path, MOST_CSV_BYTES)))
    except csv.Error as error:
        raise ValueError(f"{name}: {error}") from error
