"""Lists the runs and sweeps below a results directory. Owns what an entry shows. Judges nothing and writes nothing.

Does not own which directories are runs, and which are live (``chaos.commands.runs.found``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from chaos.commands.runs.found import LIVE, UNFINISHED, RunRow, row_of, runs_below, written_lately
from chaos.sweeps.directory import CELLS
from chaos.sweeps.summary import STATES
from verifier.evidence.how_many import how_many
from verifier.evidence.live import LiveState
from verifier.evidence.run_directory import RunDirectory, read_json

Kind = Literal["run", "sweep"]


@dataclass(frozen=True, slots=True)
class Listed:
    """A run or a sweep. ``place`` is its directory below the results, ``page`` the file to read, "" without one.

    ``verdict`` is the recorded one, ``LIVE``, or why there is no verdict; ``details`` are anomalies, the progress of
    what is live, or how the cells of a sweep ended.
    """

    kind: Kind
    place: str
    page: str
    name: str
    seed: int | None
    verdict: str
    details: str
    started: str
    size_bytes: int


def entries_below(base: Path, now_s: float) -> list[Listed]:
    """The runs and sweeps of a results directory, without the cells of sweeps. ``now_s`` is in the clock of files."""
    runs = (_run(base, row) for row in runs_below(base, now_s))
    return [*runs, *_sweeps(base, now_s)]


def cells_of(base: Path, sweep: Path, now_s: float) -> list[Listed]:
    """The runs of a sweep's cells, by name."""
    cells = sweep / CELLS
    paths = sorted(cells.iterdir()) if cells.is_dir() else []
    rows = (row_of(path, now_s) for path in paths if path.is_dir() and not path.is_symlink())
    return [_run(base, row) for row in rows if row is not None]


def _run(base: Path, row: RunRow) -> Listed:
    directory = RunDirectory(row.path)
    details = "" if row.anomalies in ("none", "?") else row.anomalies
    return Listed(
        "run",
        row.path.relative_to(base).as_posix(),
        directory.report_html.name if directory.report_html.is_file() else "",
        row.name,
        row.seed,
        row.verdict,
        _progress(directory) if row.verdict == LIVE else details,
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
        is_live = ended is None and any(written_lately(each, now_s) for each in (directory, *_cells(directory)))
        verdict = LIVE if is_live else UNFINISHED if ended is None else _verdict(whole.get("state"), counts)
        page = "sweep.html" if (directory / "sweep.html").is_file() else ""
        details = ", ".join(f"{count} {key}" for key, count in counts.items())
        yield Listed("sweep", directory.relative_to(base).as_posix(), page, name, None, verdict, details, started, 0)


def _cells(sweep: Path) -> list[Path]:
    cells = sweep / CELLS
    return [path for path in cells.iterdir() if path.is_dir()] if cells.is_dir() else []


def _verdict(told: object, counts: dict[str, int]) -> str:
    """The recorded state of a sweep or, if it has none, the worst outcome of its cells."""
    if told in STATES:
        return str(told)
    return next((name for name in STATES if counts.get(name)), "empty")


def _progress(directory: RunDirectory) -> str:
    """The progress of a live run. Only runs with ``--web`` record it."""
    try:
        live = LiveState.read(directory.live_json)
        acked = int(live.load.get("acked", 0))
    except (OSError, ValueError, TypeError, AttributeError):
        return ""
    faults = f", {live.done} of {how_many(live.planned, 'fault')}" if live.planned else ""
    return f"{live.phase}{faults}, {how_many(acked, 'record')} acknowledged"
