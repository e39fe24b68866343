"""The paths in a sweep's directory. Owns the names of files and directories, not their contents.

``results/NAME/TIME/`` has ``sweep.json``, ``sweep.md``, ``sweep.html``, ``summary.md`` and ``junit.xml``. Each cell has
``cells/CELL/`` (its run directory), ``schedules/CELL.yaml`` and ``logs/CELL.log``; one that was shrunk also has
``shrunk/CELL/``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from chaos.sweeps.model import Cell
from verifier.evidence.run_directory import RunDirectory, empty_directory, new_directory

CELLS = "cells"
SHRUNK = "shrunk"


@dataclass(frozen=True, slots=True)
class SweepDirectory:
    """The paths of one sweep."""

    path: Path

    @classmethod
    def create(cls, base: str | Path, name: str, now: datetime) -> SweepDirectory:
        """Create ``base/name/<UTC yyyymmddThhmmssZ>``, with ``-2`` and so on if that exists. Raises ``OSError``."""
        return cls(new_directory(Path(base) / name, now)).prepare()

    @classmethod
    def at(cls, path: str | Path) -> SweepDirectory:
        """Use the directory at ``path``, created if absent. Raises ``OSError``, also if it is not empty."""
        return cls(empty_directory(path)).prepare()

    def prepare(self) -> SweepDirectory:
        """Create the subdirectories."""
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

    @property
    def summary_md(self) -> Path:
        return self.path / "summary.md"

    @property
    def junit_xml(self) -> Path:
        return self.path / "junit.xml"

    def run(self, cell: Cell) -> RunDirectory:
        return RunDirectory(self.path / CELLS / cell.name)

    def schedule(self, cell: Cell) -> Path:
        return self.path / "schedules" / f"{cell.name}.yaml"

    def log(self, cell: Cell) -> Path:
        return self.path / "logs" / f"{cell.name}.log"

    def shrunk(self, cell: Cell) -> Path:
        return self.path / SHRUNK / cell.name

    def set_aside(self, cell: Cell) -> Path | None:
        """Rename the directory that a run of this cell left without a verdict, and its ``shrunk`` directory.

        Returns the new path of the run directory; None if there was none.
        """
        path, number = self.run(cell).path, 1
        if not path.exists():
            return None
        while (aside := path.with_name(f"{path.name}.unfinished-{number}")).exists():
            number += 1
        path.rename(aside)
        if (shrunk := self.shrunk(cell)).exists():
            shrunk.rename(shrunk.with_name(aside.name))
        return aside
