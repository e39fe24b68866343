"""The load's time series: points round trip, strangers are tolerated, files of a directory are joined."""

from __future__ import annotations

from pathlib import Path

from verifier.evidence.run_directory import append_json_line
from verifier.evidence.series import SeriesPoint, read_all_series


def test_points_of_all_processes(tmp_path: Path) -> None:
    """Every file's points come back, by process; a field of a newer writer is left out."""
    producers = SeriesPoint("producers", 5, 1_000_000_000, acked=3, latency_p50_ms=1.5)
    readers = SeriesPoint("readers", 4, 1_000_000_000, read=3)
    append_json_line(tmp_path / "readers.series.jsonl", readers.to_json())
    append_json_line(tmp_path / "producers.series.jsonl", {**producers.to_json(), "later": 1})
    assert read_all_series(tmp_path) == [producers, readers]
    assert read_all_series(tmp_path / "absent") == []
