"""Spark's own reading of evidence, as it is done on a cluster and for large runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.stories import clean
from verifier import sources
from verifier.audit import RunEvidence

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


def test_sparks_workers_read_what_this_process_reads(spark: Any, tmp_path: Path) -> None:
    """Both ways give the same rows of segments and histories, torn, damaged and empty files included."""
    story = clean(partitions=2, codec="lz4")
    story.split_at = 2
    story.torn = {"reader-1"}
    directory = story.write(tmp_path)
    (directory.history_dir / "broken.arrow").write_bytes(b"no history at all")
    (directory.node(1) / "data" / "t-0" / f"{99:020d}.log").touch()
    evidence = RunEvidence.of(directory, story.model())
    histories = [sources.HistoryFilePath("run", str(path)) for path in evidence.histories]

    sources.register(spark)
    segments = sources.load_segments(spark, evidence.segments, parts=3)
    assert segments.rdd.getNumPartitions() == 3
    assert {(each.broker, each.values) for each in evidence.segments if each.partition == 0} == {
        (1, True), (2, False), (3, False),
    }  # fmt: skip
    assert _rows(segments) == _rows(sources.read_segments(spark, evidence.segments))
    loaded = _rows(sources.load_histories(spark, histories))
    assert loaded == _rows(sources.read_histories(spark, histories))
    states = {row["process"]: row["type"] for row in map(dict, loaded) if row["f"] == "file"}
    assert states == {
        "producer-1": "closed", "final-1": "closed", "sentinel": "closed", "reader-1": "torn", "broken": "damaged",
    }  # fmt: skip


def test_no_evidence_is_an_empty_table(spark: Any) -> None:
    """A run that left nothing can be asked for its facts all the same."""
    assert sources.read_segments(spark, []).count() == 0
    assert sources.read_histories(spark, []).count() == 0


def _rows(frame: Any) -> list[Any]:
    return sorted((tuple(row.asDict().items()) for row in frame.collect()), key=str)
