"""Rows of a run's histories by their functions: all files in order, and what a damaged one contributes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pytest

from cluster.seams.clock import ManualClock
from verifier.evidence import history_parts as history_parts_module
from verifier.evidence.arrow_stream import HistoryError
from verifier.evidence.history import HistoryFile, HistoryRow, HistoryWriter, stream_history
from verifier.evidence.history_parts import history_parts


def written(directory: Path, process: str, *functions: str) -> Path:
    """A history with one message for each row; sequences count from 0."""
    path = directory / f"{process}.arrow"
    writer = HistoryWriter(path, process, ManualClock())
    for sequence, f in enumerate(functions):
        writer.append(HistoryRow(f, "ok", "t", 0, 1, sequence, sequence, sequence, sequence))  # type: ignore[arg-type]
        writer.flush()
    writer.close()
    return path


def rows(directory: Path) -> list[tuple[str, str, int]]:
    columns = ("process", "f", "first_sequence")
    parts = history_parts(directory, ("send", "poll"), columns)
    return [tuple(row[name] for name in columns) for part in parts for row in part.to_pylist()]


def test_rows_with_the_functions_come_file_by_file(tmp_path: Path) -> None:
    """Files come in the order of their names, and rows with any other function are left out."""
    written(tmp_path, "readers", "poll", "idle", "poll")
    written(tmp_path, "producers", "reserve", "send")
    assert rows(tmp_path) == [("producers", "send", 1), ("readers", "poll", 0), ("readers", "poll", 2)]


def test_a_damaged_file_ends_at_its_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows before the damage count, and the next file is read as always."""
    damaged = written(tmp_path, "a", "send")
    written(tmp_path, "b", "send")

    def damaged_at_its_end(path: Path) -> tuple[HistoryFile, Iterator[pa.Table]]:
        file, parts = stream_history(path)
        return file, chain(parts, _raises() if path == damaged else ())

    monkeypatch.setattr(history_parts_module, "stream_history", damaged_at_its_end)
    assert rows(tmp_path) == [("a", "send", 0), ("b", "send", 0)]


def _raises() -> Iterator[pa.Table]:
    raise HistoryError("a part that cannot be decoded")
    yield


def test_a_file_that_cannot_be_opened_raises(tmp_path: Path) -> None:
    """An ``OSError`` reaches the caller: it is no damage, and the next file may have it too."""
    (tmp_path / "a.arrow").mkdir()
    written(tmp_path, "b", "send")
    with pytest.raises(OSError, match="directory"):
        rows(tmp_path)
