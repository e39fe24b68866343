"""Figures of recoveries and of memory, from a run's files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from verifier.evidence.run_directory import RunDirectory
from verifier.figures.recoveries import WARM_SAMPLE, Recovery, memory, recoveries, summary


def _directory(path: Path, journals: dict[int, list[dict[str, object]]]) -> RunDirectory:
    directory = RunDirectory(path).prepare()
    for broker, entries in journals.items():
        directory.node(broker).mkdir()
        directory.control_jsonl(broker).write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return directory


def _loaded(clean: bool, elapsed_ms: float, unflushed: int, logs: int = 6) -> dict[str, object]:
    figures = {"clean": clean, "elapsed_ms": elapsed_ms, "unflushed_bytes": unflushed, "logs": logs, "bytes": 10**9}
    return {"event": "logs-loaded", **figures}


def test_only_unclean_starts_with_logs_are_recoveries(tmp_path: Path) -> None:
    """A first start has nothing to recover, a clean one nothing to verify; other events are none."""
    first, clean, crash = _loaded(False, 1, 0, logs=0), _loaded(True, 5, 0), _loaded(False, 80, 20_000_000)
    directory = _directory(tmp_path, {1: [first, {"event": "registered"}, clean, crash], 2: [first]})
    assert recoveries(directory) == [Recovery(1, 80.0, 10**9, 20_000_000)]


def test_the_worst_ratio_comes_with_what_it_is_over() -> None:
    """Seconds per 100 MB of unflushed log; one with nothing unflushed has a time and no ratio."""
    found = [Recovery(1, 100, 10**9, 50_000_000), Recovery(2, 90, 10**9, 10_000_000), Recovery(3, 700, 10**9, 0)]
    assert summary(found) == {
        "count": 3,
        "longest_ms": 700,
        "unflushed_bytes": 50_000_000,
        "worst_s_per_100_mb": pytest.approx(0.9),
        "worst_unflushed_bytes": 10_000_000,
    }
    assert summary([])["count"] == 0 and summary([])["worst_s_per_100_mb"] is None


def test_a_journal_that_cannot_be_read_has_no_recoveries(tmp_path: Path) -> None:
    """It decides nothing, so it raises nothing."""
    directory = _directory(tmp_path, {1: [{"event": "logs-loaded"}], 2: [_loaded(False, 9, 7)]})
    directory.node(3).mkdir()
    directory.control_jsonl(3).write_text("no json\n")
    assert recoveries(directory) == [Recovery(2, 9.0, 10**9, 7)]


def test_memory_is_compared_with_a_warm_process(tmp_path: Path) -> None:
    """First (warm), last and peak, in megabytes; no file gives nothing."""
    directory = RunDirectory(tmp_path).prepare()
    assert memory(directory) == {}
    sizes = [10, 40, 60, 70, 80, 90, 95, 91]
    assert WARM_SAMPLE == 5
    lines = [json.dumps({"rss_bytes": {"producers": size * 1_000_000}}) + "\n" for size in sizes]
    directory.resources_jsonl.write_text("".join(lines))
    assert memory(directory) == {"producers": {"first": 90.0, "last": 91.0, "peak": 95.0}}
