"""Spark's own reading of evidence, as it is done on a cluster and for large runs."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.support.stories import clean
from verifier.run_checks import RunEvidence, staged
from verifier.spark import sources
from verifier.spark.history_rows import HistoryFilePath
from verifier.spark.staging import Abandoned, stage

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
    histories = [HistoryFilePath("run", str(path)) for path in evidence.histories]

    sources.register(spark)
    segments = sources.load_segments(spark, evidence.segments, parts=3)
    assert segments.rdd.getNumPartitions() == 3
    assert {(each.broker, each.values) for each in evidence.segments if each.partition == 0} == {
        (1, True), (2, False), (3, False),
    }  # fmt: skip
    here = staged(tmp_path / "rows", [evidence])
    assert _rows(segments) == _rows(spark.read.parquet(str(here.segments)))
    loaded = _rows(sources.load_histories(spark, histories))
    assert loaded == _rows(spark.read.parquet(str(here.histories)))
    states = {row["process"]: row["type"] for row in map(dict, loaded) if row["f"] == "file"}
    assert states == {
        "producer-1": "closed", "final-1": "closed", "sentinel": "closed", "reader-1": "torn", "broken": "damaged",
    }  # fmt: skip


def test_no_evidence_is_an_empty_table(spark: Any, tmp_path: Path) -> None:
    """A run that left nothing can be asked for its facts all the same."""
    here = stage(tmp_path / "rows", [], [])
    assert spark.read.parquet(str(here.segments)).count() == 0
    assert spark.read.parquet(str(here.histories)).count() == 0


def test_reading_says_how_far_it_is_and_ends_when_nobody_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line for so many segments; an abandoned reading stops at the next file."""
    monkeypatch.setattr("verifier.spark.staging.TOLD_FILES", 2)
    story = clean(partitions=2)
    directory = story.write(tmp_path / "run")
    evidence = RunEvidence.of(directory, story.model())
    told: list[str] = []
    staged(tmp_path / "rows", [evidence], told.append)
    replicas = {Path(segment.path).parent for segment in evidence.segments}
    total = len(evidence.segments) + len(evidence.histories) + len(replicas)
    assert told == [f"{count} of {total} files are read" for count in range(2, total + 1, 2)]
    abandoned = Event()
    abandoned.set()
    with pytest.raises(Abandoned):
        staged(tmp_path / "more", [evidence], told.append, abandoned)


def _rows(frame: Any) -> list[Any]:
    return sorted((tuple(row.asDict().items()) for row in frame.collect()), key=str)


def test_the_jvm_has_room_for_the_code_of_many_queries(spark: Any) -> None:
    """Java reserves 48 MB with one compiler, and a full cache ends threads of Spark: the verifier then stands still."""
    pools = spark._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    most = sum(pool.getUsage().getMax() for pool in pools if "Code" in pool.getName())
    assert most >= 200 << 20
