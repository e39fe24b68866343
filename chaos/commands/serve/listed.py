"""The runs and sweeps below a results directory, one entry each. Owns what an entry says, and whether it is live.

Which directories are runs is ``chaos.commands.runs.found``'s. Nothing is judged, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from chaos.commands.runs.found import UNFINISHED, RunRow, row_of, runs_below
from chaos.sweeps.directory import CELLS
from chaos.sweeps.summary import STATES
from verifier.evidence.live import LiveState
from verifier.evidence.run_directory import RunDirectory, read_json

Kind = Literal["run", "sweep"]

#: What is being written now.
LIVE = "live"
#: A run writes every second: one that was not written to for this long is not live anymore.
QUIET_S = 60.0


@dataclass(frozen=True, slots=True)
class Listed:
    """A run or a sweep. ``place`` is its directory below the results, ``page`` the file to read, "" without one.

    ``state`` is the verdict, ``LIVE``, or why there is no verdict; ``details`` are anomalies, the progress of what is
    live, or how the cells of a sweep ended.
    """

    kind: Kind
    place: str
    page: str
    name: str
    seed: int | None
    state: str
    details: str
    started: str
    size_bytes: int


def entries_below(base: Path, now_s: float) -> list[Listed]:
    """All of a results directory; ``now_s`` is the time as files have it. A sweep's cells are the sweep's."""
    runs = (_run(base, row, now_s) for row in runs_below(base))
    return [*runs, *_sweeps(base, now_s)]


def cells_of(base: Path, sweep: Path, now_s: float) -> list[Listed]:
    """The runs of a sweep's cells, by name."""
    cells = sweep / CELLS
    paths = sorted(cells.iterdir()) if cells.is_dir() else []
    rows = (row_of(path) for path in paths if path.is_dir() and not path.is_symlink())
    return [_run(base, row, now_s) for row in rows if row is not None]


def _run(base: Path, row: RunRow, now_s: float) -> Listed:
    directory = RunDirectory(row.path)
    state, details = row.verdict, "" if row.anomalies in ("none", "?") else row.anomalies
    if state == UNFINISHED and _written_lately(row.path, now_s):
        state, details = LIVE, _progress(directory)
    return Listed(
        "run",
        row.path.relative_to(base).as_posix(),
        directory.report_html.name if directory.report_html.is_file() else "",
        row.name,
        row.seed,
        state,
        details,
        row.started,
        row.size_bytes,
    )


def _sweeps(base: Path, now_s: float) -> Iterator[Listed]:
    for path in sorted((*base.glob("*/sweep.json"), *base.glob("*/*/sweep.json"))) if base.is_dir() else []:
        directory = path.parent
        if directory.is_symlink() or (directory.parent != base and directory.parent.is_symlink()):
            continue
        try:
            whole = read_json(path)
            name, counts = str(whole["sweep"]), {str(key): int(count) for key, count in whole["counts"].items()}
            started, ended = str(whole.get("started") or ""), whole.get("ended")
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        is_live = ended is None and any(_written_lately(each, now_s) for each in (directory, *_cells(directory)))
        state = LIVE if is_live else UNFINISHED if ended is None else _state(whole.get("state"), counts)
        page = "sweep.html" if (directory / "sweep.html").is_file() else ""
        details = ", ".join(f"{count} {key}" for key, count in counts.items())
        yield Listed("sweep", directory.relative_to(base).as_posix(), page, name, None, state, details, started, 0)


def _cells(sweep: Path) -> list[Path]:
    cells = sweep / CELLS
    return [path for path in cells.iterdir() if path.is_dir()] if cells.is_dir() else []


def _state(told: object, counts: dict[str, int]) -> str:
    """What it says that it comes to; of one that does not say it, the outcome that outranks the others."""
    if told in STATES:
        return str(told)
    return next((name for name in STATES if counts.get(name)), "empty")


def _written_lately(directory: Path, now_s: float) -> bool:
    """Whether anything in it, or in what the load writes, is newer than ``QUIET_S``."""
    places = (directory, directory / "loadgen", directory / "history")
    files = (path for place in places if place.is_dir() for path in (place, *place.iterdir()))
    try:
        return any(now_s - _changed_s(path) < QUIET_S for path in files)
    except OSError:  # it is gone, or not for us to read
        return False


def _changed_s(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def _progress(directory: RunDirectory) -> str:
    """How far a live run is, if it serves the web page of ``--web``: other runs do not record it."""
    try:
        live = LiveState.read(directory.live_json)
        acked = int(live.load.get("acked", 0))
    except (OSError, ValueError, TypeError, AttributeError):
        return ""
    faults = f", {live.done} of {live.planned} faults" if live.planned else ""
    return f"{live.phase}{faults}, {acked:,} records acknowledged"
