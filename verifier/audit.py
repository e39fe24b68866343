"""Runs all checks over the evidence of one or several runs in one Spark session. Owns the order of the work.

From files to ``Audit``: facts first, then the tables, then every check, then examples with their context. Decides
nothing about the verdict. A check that raises fails alone: the others are still asked.
"""

from __future__ import annotations

import importlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from verifier import anomaly_files, collect, context, excuses, sources, staging, tables
from verifier.accounts import accounts
from verifier.anomalies import ANOMALIES
from verifier.deletions import Deletions
from verifier.deletions import deletions as deletions_of
from verifier.events import Events, Grounds
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.excuses import Excuses
from verifier.expectation import Expectation
from verifier.explain.events import event_text
from verifier.facts import Audit, Found
from verifier.files.find import replica_directories
from verifier.files.replica import ReplicaDirectory
from verifier.lag import read_lags
from verifier.segments.rows import SegmentFile, find_segments
from verifier.witness import Witness, witness

logger = logging.getLogger(__name__)

#: Parts of the segments' table for each core.
PARTS_PER_CORE = 4

#: Queries that are asked at the same time.
THREADS = 2

#: Offsets in an anomaly's detail that move on with its values.
MOVING = frozenset(f"{end}_{source}" for end in ("first", "last") for source in ("ack", "log", "read"))

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """The files of one run. ``name`` keeps runs apart that are judged together."""

    name: str
    model: RunModel
    segments: tuple[SegmentFile, ...]
    histories: tuple[Path, ...]
    deletions: Deletions = field(default_factory=Deletions)
    witness: Witness = field(default_factory=Witness)

    @classmethod
    def of(
        cls, directory: RunDirectory, model: RunModel, name: str = "run", deletions: Deletions | None = None
    ) -> RunEvidence:
        """Everything that the run left: all brokers' segments of its topics, all histories.

        What was deleted on purpose is looked up in the histories, unless it is given.
        """
        topics = {topic.name for topic in model.topics}
        leaders = {(final.topic, final.partition): final.leader for final in model.final}
        found = [
            segment._replace(values=leaders.get((segment.topic, segment.partition), broker) == broker)
            for broker in directory.broker_ids()
            for segment in find_segments(name, model.run_id, broker, directory.node(broker))
            if segment.topic in topics
        ]
        histories = tuple(sorted(directory.history_dir.glob("*.arrow")))
        if deletions is None:
            deletions = deletions_of(directory, model, accounts(histories))
        return cls(name, model, tuple(found), histories, deletions, witness(directory))

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
        lagging = pool.submit(read_lags, built, sorted({name for fact in facts.values() for name in fact.live_readers}))
        events = Events(spark, built, {run.name: Grounds(run.model.settings, run.witness) for run in runs})
        found, every, failures = _run_checks(built, models, Excuses(built, events), pool, progress)
        lags = lagging.result()
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
            lags=lags.get(run.name, ()),
            failures=failures,
            anomalies={check: rows[run.name] for check, rows in every.items() if run.name in rows},
        )
    events.close()
    for frame in (built.claims, built.ledger, built.jumps, segments, history, files):
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
    built: tables.Tables, models: Mapping[str, RunModel], looked_for: Excuses, pool: Executor, progress: Progress
) -> tuple[list[tuple[str, Found]], dict[str, dict[str, pa.Table]], dict[str, str]]:
    """What each check found, with the run, in the order of ``ANOMALIES``; every anomaly, by check and run; the checks

    that raised. What excuses an anomaly is looked for only where the settings of its run permit any of its kind.
    """
    expectations = {name: Expectation(model.settings) for name, model in models.items()}

    def run(name: str) -> tuple[list[tuple[str, Found]], dict[str, pa.Table]]:
        progress(f"check {name}")
        find = importlib.import_module(f"verifier.checks.{name.replace('-', '_')}").find
        anomalies = find(built)
        judged = excuses.unexcused(anomalies)
        summary = _summary(name, judged, built.places, models)
        if any(expectations[owner].asks_for(name) for owner, _ in summary):
            judged = looked_for.split(name, anomalies)
            summary = _summary(name, judged, built.places, models)
        return summary, anomaly_files.collect(judged, built.places) if summary else {}

    found: list[tuple[str, Found]] = []
    every: dict[str, dict[str, pa.Table]] = {}
    failures: dict[str, str] = {}
    for name, answer in [(each.name, pool.submit(run, each.name)) for each in ANOMALIES if each.asks_spark]:
        try:
            summary, every[name] = answer.result()
            found += summary
        except Exception as error:
            logger.exception("check %s failed", name)
            failures[name] = (str(error).strip().splitlines() or [repr(error)])[0][:300]
    return found, every, failures


def _summary(
    check: str, anomalies: DataFrame, places: Sequence[tables.Place], models: Mapping[str, RunModel]
) -> list[tuple[str, Found]]:
    """Anomalies counted by partition, cause and excuse (each election apart), the first as the example; with the run.

    ``anomalies`` as ``Excuses.split`` gives them.
    """
    example = F.struct("offset", "stream", "sequence", F.col("size").alias("example_size"), "detail", "step", "event")
    rows = (
        anomalies.groupBy("place", "cause", "excuse", F.col("event.epoch").alias("epoch"))
        .agg(
            F.sum("count").alias("count"),
            F.sum(F.col("count") * F.col("size")).alias("size"),
            F.min(example).alias("example"),
        )
        .collect()
    )
    found = []
    order = ("cause", "place", "excuse", "epoch")
    for row in sorted(rows, key=lambda row: tuple((row[name] is not None, row[name] or 0) for name in order)):
        place = places[row["place"]]
        values = row.asDict() | row["example"].asDict()
        step, event, excuse = values.pop("step"), values.pop("event"), values["excuse"]
        del values["example"], values["place"], values["epoch"]
        values |= {"check": check, "topic": place.final.topic, "partition": place.final.partition}
        values["detail"] = {
            name: value + step if name in MOVING and value is not None else value
            for name, value in json.loads(values["detail"] or "{}").items()
        }
        values["event"] = None if event is None else event_text(excuse, event.asDict(), models[place.run])
        found.append((place.run, Found(**values)))
    return found
