"""Runs all checks over the evidence of one or several runs in one Spark session. Owns the order of the work.

From files to ``Audit``: facts first, then the tables, then every check, then examples with their context. Decides
nothing about the verdict. A check that raises fails alone: the others are still asked.
"""

from __future__ import annotations

import importlib
import json
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from verifier import collect, context, sources, staging, tables
from verifier.anomalies import NAMES
from verifier.deletions import Deletions, deletions
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.facts import Audit, Found
from verifier.files.find import replica_directories
from verifier.files.replica import ReplicaDirectory
from verifier.segments.rows import SegmentFile, find_segments

logger = logging.getLogger(__name__)

#: Parts of the segments' table for each core.
PARTS_PER_CORE = 4

#: Queries that are asked at the same time.
THREADS = 2

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """The files of one run. ``name`` keeps runs apart that are judged together."""

    name: str
    model: RunModel
    segments: tuple[SegmentFile, ...]
    histories: tuple[Path, ...]
    deletions: Deletions = field(default_factory=Deletions)

    @classmethod
    def of(cls, directory: RunDirectory, model: RunModel, name: str = "run") -> RunEvidence:
        """Everything that the run left: all brokers' segments of its topics, all histories."""
        topics = {topic.name for topic in model.topics}
        leaders = {(final.topic, final.partition): final.leader for final in model.final}
        found = [
            segment._replace(values=leaders.get((segment.topic, segment.partition), broker) == broker)
            for broker in directory.broker_ids()
            for segment in find_segments(name, model.run_id, broker, directory.node(broker))
            if segment.topic in topics
        ]
        histories = tuple(sorted(directory.history_dir.glob("*.arrow")))
        return cls(name, model, tuple(found), histories, deletions(directory, model.topics))

    @property
    def replicas(self) -> frozenset[tuple[str, int, int]]:
        """(topic, partition, broker) of every replica of which a segment was found."""
        return frozenset((segment.topic, segment.partition, segment.broker) for segment in self.segments)

    @property
    def size_bytes(self) -> int:
        """How many bytes there are to read."""
        paths = [Path(segment.path) for segment in self.segments] + list(self.histories)
        return sum(path.stat().st_size for path in paths)


def staged(
    directory: Path, runs: Sequence[RunEvidence], progress: Progress = lambda _: None, abandoned: Event | None = None
) -> staging.Staged:
    """All evidence of these runs, for Spark on this machine; see ``staging.stage``."""
    return staging.stage(directory, _segments(runs), _histories(runs), _replicas(runs), progress, abandoned)


def audit(
    spark: SparkSession,
    runs: Sequence[RunEvidence],
    progress: Progress = lambda _: None,
    here: staging.Staged | None = None,
) -> dict[str, Audit]:
    """What Spark finds out about each run, by its name. ``here``: the runs' rows, if Spark need not read the files."""
    models = {run.name: run.model for run in runs}
    history, segments, files = _load(spark, runs, here)
    # Spark plans a query in the thread that asks for it; two ask, so that both cores have work
    with ThreadPoolExecutor(THREADS) as pool:
        counting = pool.submit(collect.replica_files, segments)
        facts = collect.history_facts(history, models)
        replicas = counting.result()
        places = [place for run in runs for place in tables.judged(run.name, run.model, run.replicas, run.deletions)]
        readers = [reader for fact in facts.values() for reader in fact.readers]
        built = tables.build(spark, segments, history, files, places, readers)
        progress("comparing what was told, stored and read")
        waiting = pool.submit(collect.gaps, history)
        regions, sentinels = collect.regions(built)
        gaps = waiting.result()
        deleted = collect.deleted(built)
        found, failures = _run_checks(built, pool, progress)
    progress("gathering what surrounds the examples")
    found = context.with_context(spark, built, found)
    audits = {}
    for run in runs:
        own = replace(
            facts[run.name],
            replicas=replicas.get(run.name, ()),
            segments_listed=len(run.segments),
            deleted=deleted.get(run.name, 0),
            sentinels=sentinels.get(run.name, frozenset()),
        )
        audits[run.name] = Audit(
            facts=own,
            found=tuple(each for name, each in found if name == run.name),
            gaps=gaps.get(run.name, ()),
            regions=regions.get(run.name, ()),
            failures=failures,
        )
    for frame in (built.claims, built.ledger, segments, history, files):
        frame.unpersist()
    return audits


def _segments(runs: Sequence[RunEvidence]) -> list[SegmentFile]:
    return [segment for run in runs for segment in run.segments]


def _replicas(runs: Sequence[RunEvidence]) -> list[ReplicaDirectory]:
    return [replica for run in runs for replica in replica_directories(run.model, run.segments)]


def _histories(runs: Sequence[RunEvidence]) -> list[sources.HistoryFilePath]:
    return [sources.HistoryFilePath(run.name, str(path)) for run in runs for path in run.histories]


def _load(
    spark: SparkSession, runs: Sequence[RunEvidence], here: staging.Staged | None
) -> tuple[DataFrame, DataFrame, DataFrame]:
    """The rows of histories, of segments and of the files beside them: quick to ask again, however they are read."""
    if here is not None:
        histories, segments, beside = (
            spark.read.parquet(str(path)) for path in (here.histories, here.segments, here.files)
        )
        return histories, segments, beside
    replicas = _replicas(runs)
    sources.register(spark)
    # as many parts as there is to do at once, not as there are files: starting each, and asking each, costs its time
    parts = PARTS_PER_CORE * spark.sparkContext.defaultParallelism
    loaded = sources.load_histories(spark, _histories(runs)), sources.load_segments(spark, _segments(runs), parts)
    return loaded[0].coalesce(parts).cache(), loaded[1].cache(), sources.load_files(spark, replicas, parts).cache()


def _run_checks(
    built: tables.Tables, pool: Executor, progress: Progress
) -> tuple[list[tuple[str, Found]], dict[str, str]]:
    """What each check found, with the run, in the order of ``NAMES``; and the checks that raised."""

    def run(name: str) -> list[tuple[str, Found]]:
        progress(f"check {name}")
        find = importlib.import_module(f"verifier.checks.{name.replace('-', '_')}").find
        return _summary(name, find(built), built.places)

    found: list[tuple[str, Found]] = []
    failures: dict[str, str] = {}
    for name, answer in [(name, pool.submit(run, name)) for name in NAMES]:
        try:
            found += answer.result()
        except Exception as error:
            logger.exception("check %s failed", name)
            failures[name] = (str(error).strip().splitlines() or [repr(error)])[0][:300]
    return found, failures


def _summary(check: str, anomalies: DataFrame, places: Sequence[tables.Place]) -> list[tuple[str, Found]]:
    """Anomalies counted by partition and cause, each with the one that stands first as the example; with the run."""
    example = F.struct("offset", "stream", "sequence", F.col("size").alias("example_size"), "detail")
    rows = (
        anomalies.groupBy("place", "cause")
        .agg(
            F.sum("count").alias("count"),
            F.sum(F.col("count") * F.col("size")).alias("size"),
            F.min(example).alias("example"),
        )
        .collect()
    )
    found = []
    for row in sorted(rows, key=lambda row: (row["cause"] or "", row["place"])):
        place = places[row["place"]]
        values = row.asDict() | row["example"].asDict()
        del values["example"], values["place"]
        values |= {"check": check, "topic": place.final.topic, "partition": place.final.partition}
        found.append((place.run, Found(**values | {"detail": json.loads(values["detail"] or "{}")})))
    return found
