"""A sweep's directory: the names of what it writes. Owns names, not contents.

``results/NAME/TIME/``: ``sweep.json``, ``sweep.md``, ``sweep.html``, and for each cell ``cells/CELL/`` (its run
directory), ``schedules/CELL.yaml`` and ``logs/CELL.log``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from chaos.sweeps.model import Cell
from verifier.evidence.run_directory import RunDirectory

CELLS = "cells"


@dataclass(frozen=True, slots=True)
class SweepDirectory:
    """The paths of one sweep."""

    path: Path

    @classmethod
    def create(cls, base: str | Path, name: str, now: datetime) -> SweepDirectory:
        """Make ``base/name/<UTC yyyymmddThhmmssZ>``, with ``-2`` ... if that exists. Raises ``OSError``."""
        stem, number = f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}", 1
        while True:
            path = Path(base) / name / (stem if number == 1 else f"{stem}-{number}")
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                number += 1
                continue
            return cls(path).prepare()

    @classmethod
    def at(cls, path: str | Path) -> SweepDirectory:
        """The directory that was asked for, made if absent. Raises ``OSError``, also if it is not empty."""
        directory = Path(path)
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise FileExistsError(f"{directory} is not empty")
        return cls(directory).prepare()

    def prepare(self) -> SweepDirectory:
        """Make the subdirectories."""
        for name in (CELLS, "schedules", "logs"):
            (self.path / name).mkdir(exist_ok=True)
        return self

    @property
    def sweep_json(self) -> Path:
        return self.path / "sweep.json"

    @property
    def sweep_md(self) -> Path:
        return self.path / "sweep.md"

    @property
    def sweep_html(self) -> Path:
        return self.path / "sweep.html"

    def run(self, cell: Cell) -> RunDirectory:
        return RunDirectory(self.path / CELLS / cell.name)

    def schedule(self, cell: Cell) -> Path:
        return self.path / "schedules" / f"{cell.name}.yaml"

    def log(self, cell: Cell) -> Path:
        return self.path / "logs" / f"{cell.name}.log"

    def set_aside(self, cell: Cell) -> Path | None:
        """Rename what a run of this cell left that came to no verdict; its new name, None if there was nothing."""
        path, number = self.run(cell).path, 1
        if not path.exists():
            return None
        while (aside := path.with_name(f"{path.name}.unfinished-{number}")).exists():
            number += 1
        path.rename(aside)
        return aside
