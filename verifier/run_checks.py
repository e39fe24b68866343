"""Runs all checks over the evidence of one or several runs in one Spark session. Owns the order of the work.

From files to ``Audit``: facts first, then the tables, then every check, then examples with their context. Decides
nothing about the verdict. A check that raises fails alone: the others are still asked.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

from pyspark.sql import DataFrame, SparkSession

from verifier import collect, context, findings, tables
from verifier.accounts.summing import accounts
from verifier.closing.wall_clock import STEADY, ClockShift, known_shift
from verifier.deletions import Deletions
from verifier.deletions import deletions as deletions_of
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import RunModel
from verifier.excuses.by_value import Excuses
from verifier.excuses.event_rows import Grounds
from verifier.excuses.events import Events
from verifier.facts import Audit, ReaderReach, ReadLag
from verifier.figures.lag import read_lags
from verifier.files import rows as file_rows
from verifier.files.find import replica_directories
from verifier.files.replica import ReplicaDirectory
from verifier.places import Place, judged, partition_rows, replica_rows, unsettled, unsettled_rows
from verifier.segments import rows
from verifier.segments.rows import SegmentFile, find_segments
from verifier.spark import questions, sources, staging, written_tables
from verifier.spark.history_rows import HISTORY_COLUMNS, HistoryFilePath
from verifier.spark.settings import is_tiny
from verifier.suspects import examine, suspects
from verifier.transactions.evidence import aborted_ranges, has_transactions
from verifier.transactions.model import AbortedRange
from verifier.witness.witness import Witness, witness

logger = logging.getLogger(__name__)

#: Parts of the segments' table for each core.
PARTS_PER_CORE = 4


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """The files of one run. ``name`` keeps runs apart that are judged together."""

    name: str
    model: RunModel
    segments: tuple[SegmentFile, ...]
    histories: tuple[Path, ...]
    deletions: Deletions = field(default_factory=Deletions)
    witness: Witness = field(default_factory=Witness)
    shift: ClockShift = STEADY
    is_transactional: bool = False
    aborted: tuple[AbortedRange, ...] = ()

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
        return cls(
            name,
            model,
            tuple(found),
            histories,
            deletions,
            witness(directory, sorted(topics)),
            known_shift(directory, model),
            has_transactions(directory, model),
            tuple(aborted_ranges(directory, model)),
        )

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
    directory: Path,
    runs: Sequence[RunEvidence],
    progress: staging.TellProgress = lambda _: None,
    abandoned: Event | None = None,
) -> staging.Staged:
    """All evidence of these runs, for Spark on this machine; see ``staging.stage``."""
    return staging.stage(directory, _segments(runs), _histories(runs), _replicas(runs), progress, abandoned)


def _drop_late_answers(runs: Sequence[RunEvidence]) -> list[tuple[str, str]]:
    """The processes whose client takes nothing from a leader that it has left (``epochs.told_by_its_leader``)."""
    return [(run.name, each.name) for run in runs for each in run.model.evidence.processes if each.client == "native"]


def audit(
    spark: SparkSession,
    runs: Sequence[RunEvidence],
    progress: staging.TellProgress = lambda _: None,
    here: staging.Staged | None = None,
) -> dict[str, Audit]:
    """What Spark finds out about each run, by its name. ``here``: the runs' rows, if Spark need not read the files."""
    models = {run.name: run.model for run in runs}
    history, segments, files = _load(spark, runs, here)
    first = questions.ask(
        {
            "history": collect.ask_history(history),
            "segments": collect.ask_segments(segments),
            "gaps": collect.ask_gaps(history),
        }
    )
    facts, replicas = collect.history_facts(first["history"], models), collect.replica_files(first["segments"])
    places = judged_places(runs)
    readers = [reader for fact in facts.values() for reader in fact.readers]
    progress("comparing what was told, stored and read")
    directory = None if here is None else here.tables
    aborted = [(run.name, each) for run in runs for each in run.aborted]
    built = tables.build(spark, segments, history, files, places, readers, _drop_late_answers(runs), directory, aborted)
    progress(f"asking {len(findings.CHECKED)} checks")
    checks = _to_ask(spark, here, places, readers)
    answers, lags = _ask(built, checks, sorted({name for fact in facts.values() for name in fact.live_readers}))
    regions, sentinels = collect.regions(answers.rows["ledger"], places)
    untold = collect.untold(answers.rows["untold"], places)
    deleted = {row["run"]: int(row["deleted"]) for row in answers.rows.get("deleted", [])}
    due = collect.due(answers.rows.get("due", []), places)
    mistimed = collect.mistimed(answers.rows["mistimed"], places)
    gaps = collect.gaps(first["gaps"])
    events = Events(spark, built, {run.name: Grounds.of(run.model, run.witness) for run in runs})
    found, every, failed = findings.examined(answers, models, Excuses(built, events), built)
    failures = answers.failures | failed
    progress("gathering what surrounds the examples")
    found = context.with_context(spark, built, found)
    contradicted = sorted(events.elections.contradicted)
    audits = {}
    for run in runs:
        own = replace(
            facts[run.name],
            replicas=replicas.get(run.name, ()),
            segments_listed=len(run.segments),
            deleted=deleted.get(run.name, 0),
            sentinels=sentinels.get(run.name, frozenset()),
            untold=untold.get(run.name, ()),
            contradicted=tuple(
                (topic, partition, epoch) for name, topic, partition, epoch in contradicted if name == run.name
            ),
            due=due.get(run.name, {}),
            mistimed=mistimed.get(run.name, ()),
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
    for frame in (built.claims, built.ledger, built.jumps, segments, history, files, *built.kept):
        frame.unpersist()
    return audits


def judged_places(runs: Sequence[RunEvidence]) -> list[Place]:
    """The partitions of all runs that can be judged, by their numbers; also those of which there are bytes alone."""
    return [
        replace(place, is_transactional=run.is_transactional)
        for run in runs
        for find in (judged, unsettled)
        for place in find(run.name, run.model, run.replicas, run.deletions, run.shift)
    ]


def _to_ask(
    spark: SparkSession, here: staging.Staged | None, places: Sequence[Place], readers: Sequence[ReaderReach]
) -> Sequence[str]:
    """The checks that may find something. Of much evidence all are asked: that costs little beside the rows."""
    if here is None or not is_tiny(spark):
        return findings.CHECKED
    rows = examine(here, replica_rows(places), partition_rows(places, readers), unsettled_rows(places))
    if not rows.is_reliable:
        return findings.CHECKED
    found = suspects(rows)
    return [name for name in findings.CHECKED if name not in found or found[name]]


def _ask(
    built: tables.Tables, checks: Sequence[str], live_readers: list[str]
) -> tuple[findings.Answers, dict[str, tuple[ReadLag, ...]]]:
    """What the checks found, and the read lags by run."""
    # Spark plans a query in the thread that asks for it; two ask, so that both cores have work
    with ThreadPoolExecutor(1) as pool:
        lagging = pool.submit(read_lags, built, live_readers)
        return findings.answers_to(built, checks), lagging.result()


def _segments(runs: Sequence[RunEvidence]) -> list[SegmentFile]:
    return [segment for run in runs for segment in run.segments]


def _replicas(runs: Sequence[RunEvidence]) -> list[ReplicaDirectory]:
    return [replica for run in runs for replica in replica_directories(run.model, run.segments, run.shift)]


def _histories(runs: Sequence[RunEvidence]) -> list[HistoryFilePath]:
    return [HistoryFilePath(run.name, str(path)) for run in runs for path in run.histories]


def _load(
    spark: SparkSession, runs: Sequence[RunEvidence], here: staging.Staged | None
) -> tuple[DataFrame, DataFrame, DataFrame]:
    """The rows of histories, of segments and of the files beside them: quick to ask again, however they are read."""
    if here is not None:
        read = (
            (here.histories, HISTORY_COLUMNS),
            (here.segments, rows.COLUMNS),
            (here.files, file_rows.COLUMNS),
        )
        histories, segments, beside = (written_tables.read(spark, path, sources.columns(named)) for path, named in read)
        return histories, segments, beside
    replicas = _replicas(runs)
    sources.register(spark)
    # as many parts as there is to do at once, not as there are files: starting each, and asking each, costs its time
    parts = PARTS_PER_CORE * spark.sparkContext.defaultParallelism
    loaded = sources.load_histories(spark, _histories(runs)), sources.load_segments(spark, _segments(runs), parts)
    return loaded[0].coalesce(parts).cache(), loaded[1].cache(), sources.load_files(spark, replicas, parts).cache()
