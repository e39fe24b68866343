"""A run directory: the names of its files (docs/verifier.md) and how they appear. Owns names, not contents.

Whole files appear by write-then-rename, so that anyone who looks sees all of a file or none of it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from verifier.evidence.bounded import MOST_JSON_BYTES, MOST_RUN_BYTES, lines, whole
from verifier.evidence.texts import encodable

LATEST = "latest"


def new_directory(parent: Path, now: datetime, ending: str = "") -> Path:
    """Make ``parent/<UTC yyyymmddThhmmssZ><ending>``, with ``-2``, ``-3`` ... if that exists. Raises ``OSError``."""
    stem = f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}{ending}"
    parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        path = parent / (stem if number == 1 else f"{stem}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            number += 1
        else:
            return path


def empty_directory(path: str | Path) -> Path:
    """The directory that was asked for, made if absent. Raises ``OSError``, also if it is not empty."""
    directory = Path(path)
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise FileExistsError(f"{directory} is not empty")
    return directory


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """The paths of one run. Nothing is created by naming it; see ``create`` and ``prepare``."""

    path: Path

    @classmethod
    def create(cls, base: str | Path, name: str, seed: int, now: datetime) -> RunDirectory:
        """Make ``base/name/<UTC yyyymmddThhmmssZ>-s<seed>``, with ``-2``, ``-3`` ... if that exists.

        Raises ``OSError`` if it cannot be made.
        """
        return cls(new_directory(Path(base) / name, now, f"-s{seed}")).prepare()

    @classmethod
    def at(cls, path: str | Path) -> RunDirectory:
        """The directory that was asked for (``--out``), made if absent. Raises ``OSError``, also if it is not empty."""
        return cls(empty_directory(path)).prepare()

    def prepare(self) -> RunDirectory:
        """Make the subdirectories that a run writes into."""
        for directory in (self.history_dir, self.nodes_dir, self.loadgen_dir):
            directory.mkdir(parents=True, exist_ok=True)
        return self

    @property
    def run_json(self) -> Path:
        return self.path / "run.json"

    @property
    def schedule_yaml(self) -> Path:
        return self.path / "schedule.yaml"

    @property
    def faults_jsonl(self) -> Path:
        return self.path / "faults.jsonl"

    @property
    def leaders_jsonl(self) -> Path:
        """Who led each partition, as the conductor saw it: a line for each change."""
        return self.path / "leaders.jsonl"

    @property
    def stable_offsets_jsonl(self) -> Path:
        return self.path / "stable_offsets.jsonl"

    @property
    def resources_jsonl(self) -> Path:
        """Memory of the run's processes and free disk, one sample per line."""
        return self.path / "resources.jsonl"

    @property
    def history_dir(self) -> Path:
        return self.path / "history"

    def history(self, process: str) -> Path:
        """The history file of one load process."""
        return self.history_dir / f"{process}.arrow"

    @property
    def nodes_dir(self) -> Path:
        return self.path / "nodes"

    def node(self, broker_id: int) -> Path:
        """``nodes/<broker>``: log, properties, data, ``defects.jsonl`` of one broker."""
        return self.nodes_dir / str(broker_id)

    def control_jsonl(self, broker_id: int) -> Path:
        """What one broker did in its part in control, and how it came up, one JSON object per line."""
        return self.node(broker_id) / "control.jsonl"

    @property
    def loadgen_dir(self) -> Path:
        return self.path / "loadgen"

    def status_json(self, process: str) -> Path:
        """The newest ``SeriesPoint`` of one load process, replaced every second."""
        return self.loadgen_dir / f"{process}.status.json"

    def series_jsonl(self, process: str) -> Path:
        """All ``SeriesPoint`` of one load process, one per line."""
        return self.loadgen_dir / f"{process}.series.jsonl"

    def orders_jsonl(self, process: str) -> Path:
        return self.loadgen_dir / f"{process}.orders.jsonl"

    @property
    def load_settings_json(self) -> Path:
        """What the load processes were handed, before they began."""
        return self.loadgen_dir / "settings.json"

    @property
    def read_back_json(self) -> Path:
        """How a standalone load was read back (``verifier.evidence.standalone``); a run has none."""
        return self.loadgen_dir / "read-back.json"

    @property
    def live_json(self) -> Path:
        """What the run is doing now, replaced every second; only where a web interface shows it."""
        return self.path / "live.json"

    @property
    def web_json(self) -> Path:
        """Where the load's web interface listens: ``{"url": ...}``; only with one."""
        return self.loadgen_dir / "web.json"

    @property
    def verdict_json(self) -> Path:
        return self.path / "verdict.json"

    @property
    def anomalies_dir(self) -> Path:
        """Every anomaly of every check as Parquet and CSV; absent if none was found."""
        return self.path / "anomalies"

    @property
    def report_html(self) -> Path:
        return self.path / "report.html"

    @property
    def summary_md(self) -> Path:
        return self.path / "summary.md"

    @property
    def junit_xml(self) -> Path:
        return self.path / "junit.xml"

    @property
    def seal_json(self) -> Path:
        """What every file of the evidence was when the run ended (``verifier.evidence.seal``)."""
        return self.path / "seal.json"

    @property
    def run_log(self) -> Path:
        return self.path / "run.log"

    def size_bytes(self) -> int:
        """The size of all files of the run."""
        return sum(path.stat().st_size for path in self.path.rglob("*") if path.is_file() and not path.is_symlink())

    def read_run(self) -> dict[str, Any]:
        """``run.json`` as it stands. Raises ``FileNotFoundError`` or ``ValueError``."""
        return read_json(self.run_json, MOST_RUN_BYTES)

    def read_faults(self) -> list[dict[str, Any]]:
        """The faults as they happened; empty if there is no file."""
        return list(read_json_lines(self.faults_jsonl))

    def read_leaders(self) -> list[dict[str, Any]]:
        """The changes of leaders that the conductor saw; empty if there is no file."""
        return list(read_json_lines(self.leaders_jsonl))

    def read_resources(self) -> list[dict[str, Any]]:
        """The samples of memory and disk that the conductor took; empty if there is no file."""
        return list(read_json_lines(self.resources_jsonl))

    def read_journal(self, broker_id: int) -> list[dict[str, Any]]:
        """What one broker noted about itself; empty if there is no file. Raises ``ValueError`` for what is no
        journal."""
        return list(read_json_lines(self.control_jsonl(broker_id)))

    def broker_ids(self) -> list[int]:
        """The brokers that left something under ``nodes/``, ascending."""
        if not self.nodes_dir.is_dir():
            return []
        names = [path.name for path in self.nodes_dir.iterdir() if path.is_dir()]
        return sorted(int(name) for name in names if name.isascii() and name.isdecimal())


def update_latest(run: RunDirectory, base: str | Path) -> Path:
    """Point ``base/latest`` at this run by a relative link, in one step. Returns the link. Raises ``OSError``."""
    link = Path(base) / LATEST
    temporary = link.with_name(f".{LATEST}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(os.path.relpath(run.path, base), target_is_directory=True)
    temporary.replace(link)
    return link


def write_text_atomic(path: Path, text: str) -> None:
    """Write ``path`` whole, by write-then-rename; lone surrogates are replaced. Raises ``OSError``."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    # made here, whatever had the name: someone may have put a link there
    temporary.unlink(missing_ok=True)
    with temporary.open("x", encoding="utf-8") as file:
        file.write(encodable(text))
    temporary.replace(path)


def write_json_atomic(path: Path, value: Any) -> None:
    """Write ``value`` as indented JSON, whole. Raises ``OSError``, ``TypeError`` or ``ValueError`` (also for NaN)."""
    write_text_atomic(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def append_json_line(path: Path, value: Any) -> None:
    """Append one object to a JSON-lines file that has one writer. Raises ``OSError``."""
    line = json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"
    with path.open("a", encoding="utf-8") as file:
        file.write(line)


def read_json(path: Path, most_bytes: int = MOST_JSON_BYTES) -> dict[str, Any]:
    """One JSON object. Raises ``FileNotFoundError``, or ``ValueError`` if it is not an object or too large to read."""
    value = _parsed(whole(path, most_bytes).decode())
    if not isinstance(value, dict):
        raise ValueError(f"{path}: expected a JSON object, found {type(value).__name__}")
    return value


def read_json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON-lines file; none if it is absent. A last line without its end (a kill) is left out.

    Raises ``ValueError`` for any other line that is no object, or has a number beyond 64 bits: whatever takes it for
    64 bits would raise far from here; also for a file that is too large to read.
    """
    if not path.exists():
        return
    for number, line in enumerate(lines(path), start=1):
        if not line.endswith(b"\n"):
            return
        value = _parsed(line.decode(), parse_int=_integer)
        if not isinstance(value, dict):
            raise ValueError(f"{path}:{number}: expected a JSON object")
        yield value


def _parsed(text: str, parse_int: Callable[[str], int] = int) -> Any:
    """Raises ``ValueError``, also for what is nested more deeply than Python follows."""
    try:
        return json.loads(text, parse_float=_number, parse_int=parse_int, parse_constant=_constant)
    except RecursionError:
        raise ValueError("values are nested too deeply") from None


def _integer(text: str) -> int:
    return within_64_bits(int(text))


def _number(text: str) -> float:
    value = float(text)
    within_64_bits(int(value) if math.isfinite(value) else 1 << 64)
    return value


def _constant(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


def within_64_bits(value: int) -> int:
    """The same number. Raises ``ValueError`` for one that takes more than 64 bits with its sign."""
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"a number of {value.bit_length()} bits and its sign is beyond 64 bits")
    return value
