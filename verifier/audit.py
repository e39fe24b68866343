"""Runs all checks over the evidence of one or several runs in one Spark session. Owns the order of the work.

From files to ``Audit``: facts first, then the tables, then every check, then examples with their context. Decides
nothing about the verdict. A check that raises fails alone: the others are still asked.
"""

from __future__ import annotations

import importlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from threading import Event

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from verifier import asking, collect, context, sources, staging, tables
from verifier.anomalies import NAMES
from verifier.checks.common import COLUMNS
from verifier.deletions import Deletions, deletions
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.facts import Audit, Found
from verifier.history_rows import HISTORY_COLUMNS, HistoryFilePath
from verifier.segments import rows
from verifier.segments.rows import SegmentFile, find_segments

logger = logging.getLogger(__name__)

#: Parts of the segments' table for each core.
PARTS_PER_CORE = 4

#: The question that holds what all checks found.
CHECKS = "checks"

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
    return staging.stage(directory, _segments(runs), _histories(runs), progress, abandoned)


def audit(
    spark: SparkSession,
    runs: Sequence[RunEvidence],
    progress: Progress = lambda _: None,
    here: staging.Staged | None = None,
) -> dict[str, Audit]:
    """What Spark finds out about each run, by its name. ``here``: the runs' rows, if Spark need not read the files."""
    models = {run.name: run.model for run in runs}
    history, segments = _load(spark, runs, here)
    first = asking.ask(
        {
            "history": collect.ask_history(history),
            "segments": collect.ask_segments(segments),
            "gaps": collect.ask_gaps(history),
        }
    )
    facts, replicas = collect.history_facts(first["history"], models), collect.replica_files(first["segments"])
    places = [place for run in runs for place in tables.judged(run.name, run.model, run.replicas, run.deletions)]
    readers = [reader for fact in facts.values() for reader in fact.readers]
    progress("comparing what was told, stored and read")
    built = tables.build(spark, segments, history, places, readers, None if here is None else here.tables)
    progress(f"asking {len(NAMES)} checks")
    answers, failures = _answers(built)
    regions, sentinels = collect.regions(answers["ledger"], places)
    deleted = {row["run"]: int(row["deleted"]) for row in answers.get("deleted", [])}
    gaps = collect.gaps(first["gaps"])
    progress("gathering what surrounds the examples")
    found = context.with_context(spark, built, _found(answers.get(CHECKS, []), places))
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
    for frame in (built.claims, built.ledger, segments, history):
        frame.unpersist()
    return audits


def _segments(runs: Sequence[RunEvidence]) -> list[SegmentFile]:
    return [segment for run in runs for segment in run.segments]


def _histories(runs: Sequence[RunEvidence]) -> list[HistoryFilePath]:
    return [HistoryFilePath(run.name, str(path)) for run in runs for path in run.histories]


def _load(spark: SparkSession, runs: Sequence[RunEvidence], here: staging.Staged | None) -> tuple[DataFrame, DataFrame]:
    """The rows of all histories and of all segments: quick to ask again, however they are read."""
    if here is not None:
        # with the columns told, or else Spark starts a job for each to look them up
        history = spark.read.schema(sources.columns(HISTORY_COLUMNS)).parquet(str(here.histories))
        return history, spark.read.schema(sources.columns(rows.COLUMNS)).parquet(str(here.segments))
    files, histories = _segments(runs), _histories(runs)
    sources.register(spark)
    # as many parts as there is to do at once, not as there are files: starting each, and asking each, costs its time
    parts = PARTS_PER_CORE * spark.sparkContext.defaultParallelism
    loaded = sources.load_histories(spark, histories), sources.load_segments(spark, files, parts)
    return loaded[0].coalesce(parts).cache(), loaded[1].cache()


def _answers(built: tables.Tables) -> tuple[dict[str, asking.Rows], dict[str, str]]:
    """What Spark says of the ledger and to all checks, in one job; and the checks that raised, with the reason.

    If the one job fails, each check is asked alone, so that one that raises silences no other.
    """
    needed = {"ledger": collect.ask_ledger(built)}
    deleted = collect.ask_deleted(built)
    if deleted is not None:
        needed["deleted"] = deleted
    checks: dict[str, DataFrame] = {}
    failures: dict[str, str] = {}
    for name in NAMES:
        try:
            find = importlib.import_module(f"verifier.checks.{name.replace('-', '_')}").find
            checks[name] = find(built).select(*COLUMNS)
        except Exception as error:
            logger.exception("check %s failed", name)
            failures[name] = asking.reason(error)
    try:
        return asking.ask(needed | _counted(checks)), failures
    except Exception:
        logger.warning("the checks fail together; each is asked alone", exc_info=True)
    answers = asking.ask(needed) | {CHECKS: []}
    for name, anomalies in checks.items():
        try:
            answers[CHECKS] += asking.ask(_counted({name: anomalies}))[CHECKS]
        except Exception as error:
            logger.exception("check %s failed", name)
            failures[name] = asking.reason(error)
    return answers, failures


def _counted(checks: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """One question: anomalies by check, partition and cause, each with the one that stands first as the example."""
    if not checks:
        return {}
    example = F.struct("offset", "stream", "sequence", F.col("size").alias("example_size"), "detail")
    together = reduce(DataFrame.union, [each.withColumn("check", F.lit(name)) for name, each in checks.items()])
    counted = together.groupBy("check", "place", "cause").agg(
        F.sum("count").alias("count"),
        F.sum(F.col("count") * F.col("size")).alias("size"),
        F.min(example).alias("example"),
    )
    return {CHECKS: counted}


def _found(rows: asking.Rows, places: Sequence[tables.Place]) -> list[tuple[str, Found]]:
    """The answer to ``_counted``, in the order of ``NAMES``, with the run of each."""
    found = []
    for row in sorted(rows, key=lambda row: (NAMES.index(row["check"]), row["cause"] or "", row["place"])):
        place = places[row["place"]]
        values = row | row["example"]
        del values["example"], values["place"]
        values |= {"topic": place.final.topic, "partition": place.final.partition}
        found.append((place.run, Found(**values | {"detail": json.loads(values["detail"] or "{}")})))
    return found
