"""The evidence as Spark DataFrames. Owns how rows of files become the tables that checks read; judges nothing.

Several runs can be judged in one job, and no table mixes them: ``place`` is one partition of one run, as a number
(``places`` has them all, in that order), so that keys are integers. A value is known by (place, stream, sequence).
Names of the tables, and what a row of each is:

- ``segments``   a file, batch or span of values of one replica (``verifier.segments.rows``), with what judging needs of
  its replica: ``is_leader`` (of the final leader), ``start`` and ``limit``, the offsets from which on and below
  which it may be compared, and the bounds of its headers (``verifier.bounds``).
- ``unsettled``  the sound batches of replicas that did not settle, with the same columns: no leader, and no limit.
- ``files``      what is wrong with a file beside the log of one replica (``verifier.files.rows``).
- ``history``    a row of a history that concerns a judged partition, as it was written.
- ``log``        a span of values of the final leader's log, between its start and final high watermark, with the batch.
- ``claims``     who says which values stand where (``verifier.claims``).
- ``ledger``     all claims on one value in one row: what was told, what is on disk, what was read. A row stands for all
  ``values`` that follow each other and have the same claims.
- ``positions``  all claims on one offset in one row, likewise.
- ``deleted``    the same of offsets below ``from_offset``, by acknowledgements and reads alone.
- ``jumps``      a row that a reader was handed and that does not begin where its session stood (``checks.polls``).
- ``drop_late_answers``  the processes whose client takes nothing from the answer of a leader that it has left.

Only partitions that the final phase found ``ok`` have a log to judge by. Of the others (``places`` that are not
settled) there is ``unsettled`` alone: a check finds there what no replica that lags, or was not cut yet, explains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from verifier.checks.polls import jumps_of
from verifier.claims import all_claims, deleted_claims, ledger_of, positions_of
from verifier.facts import ReaderReach
from verifier.not_owed import aborted_table, with_aborts, with_commits, with_isolation
from verifier.places import NAMED, Place, columns, partition_rows, replica_rows, table_of, unsettled_rows
from verifier.spark.written_tables import written
from verifier.transactions.model import AbortedRange


@dataclass(frozen=True, slots=True)
class Tables:
    """All tables; the module says what they hold. ``unsettled`` is None where everything settled."""

    places: Sequence[Place]
    replicas: DataFrame
    segments: DataFrame
    files: DataFrame
    history: DataFrame
    log: DataFrame
    claims: DataFrame
    ledger: DataFrame
    positions: DataFrame
    deleted: DataFrame
    jumps: DataFrame
    drop_late_answers: DataFrame
    unsettled: DataFrame | None = None
    directory: Path | None = None
    kept: list[DataFrame] = field(default_factory=list)

    def with_unsettled(self, batches: DataFrame) -> DataFrame:
        """These rows of ``segments``, and those of ``unsettled``."""
        return batches if self.unsettled is None else batches.unionByName(self.unsettled.select(*batches.columns))

    def made(self, frame: DataFrame, name: str) -> DataFrame:
        """The same rows, computed once (see ``_made``); anyone who owns the tables gives back what is ``kept``."""
        made = _made(frame, self.directory, name)
        self.kept.append(made)
        return made


def build(
    spark: SparkSession,
    segments: DataFrame,
    history: DataFrame,
    files: DataFrame,
    places: Sequence[Place],
    readers: Sequence[ReaderReach],
    drop_late_answers: Sequence[tuple[str, str]],
    directory: Path | None = None,
    aborted: Sequence[tuple[str, AbortedRange]] = (),
) -> Tables:
    """Join and sum up the raw rows. ``segments`` and ``history`` should be cached: several tables read them.

    What many checks ask is made once: as files in ``directory``, or in Spark's cache if it sees no files of ours.
    """
    partitions = F.broadcast(spark.createDataFrame(partition_rows(places, readers)))
    replicas = F.broadcast(spark.createDataFrame(replica_rows(places)))
    own_segments = segments.join(replicas, [*NAMED, "broker"]).drop(*NAMED)
    is_transactional = any(place.is_transactional for place in places)
    own_history = history.join(partitions.select(*NAMED, "place", "from_offset", "judges_deleted", "due_ns"), NAMED)
    jumps = with_isolation(jumps_of(own_history), history, is_transactional=is_transactional)
    told = with_commits(own_history, history, is_transactional=is_transactional)
    log = _log(own_segments)
    numbers = {(each.run, each.final.topic, each.final.partition): number for number, each in enumerate(places)}
    stored = with_aborts(log, aborted_table(spark, aborted, numbers))
    claims = all_claims(told, _reader_bits(spark, readers), stored)
    claims = _made(claims, directory, "claims")
    ledger = _made(ledger_of(claims).join(partitions.drop(*NAMED), "place"), directory, "ledger")
    told_of_deleted = deleted_claims(own_history)
    may_contradict = any(place.judges_deleted and place.from_offset > 0 for place in places)
    return Tables(
        places=places,
        replicas=replicas.drop(*NAMED),
        segments=own_segments,
        files=files.join(replicas, [*NAMED, "broker"]).drop(*NAMED),
        history=own_history.drop("topic", "partition"),
        log=log,
        claims=claims,
        ledger=ledger,
        positions=positions_of(claims),
        deleted=positions_of(told_of_deleted if may_contradict else told_of_deleted.limit(0)),
        jumps=_made(jumps.drop("run"), directory, "jumps"),
        drop_late_answers=_drop_late_answers(spark, drop_late_answers),
        unsettled=_unsettled(spark, segments, places),
        directory=directory,
    )


def _made(frame: DataFrame, directory: Path | None, name: str) -> DataFrame:
    """The same rows, computed once."""
    return frame.cache() if directory is None else written(frame, directory / name)


def _reader_bits(spark: SparkSession, readers: Sequence[ReaderReach]) -> DataFrame:
    own_bits = sorted({(reader.run, reader.process, reader.bit) for reader in readers})
    rows = [{"run": run, "process": process, "bit": bit} for run, process, bit in own_bits]
    return spark.createDataFrame(table_of(rows, [columns("run", "process"), columns("bit", kind=pa.int64())]))


def _drop_late_answers(spark: SparkSession, processes: Sequence[tuple[str, str]]) -> DataFrame:
    rows = [{"run": run, "process": process, "drops_late_answers": True} for run, process in processes]
    return spark.createDataFrame(
        table_of(rows, [columns("run", "process"), columns("drops_late_answers", kind=pa.bool_())])
    )


def _unsettled(spark: SparkSession, segments: DataFrame, places: Sequence[Place]) -> DataFrame | None:
    """A damaged batch says nothing here: a disk that was not asked again may have left it."""
    if all(place.is_settled for place in places):
        return None
    replicas = F.broadcast(spark.createDataFrame(unsettled_rows(places)))
    sound = (F.col("kind") == "batch") & F.col("problem").isNull()
    return segments.join(replicas, [*NAMED, "broker"]).drop(*NAMED).filter(sound)


def _log(segments: DataFrame) -> DataFrame:
    """The spans of the leader's log, without what lies outside of it. Whose a value is that is not one of ours is
    null."""
    spans = segments.filter(F.col("is_leader") & (F.col("kind") == "span"))
    ours = F.col("value_problem").isNull() | (F.col("value_problem") == "payload")
    below = F.greatest(F.col("start") - F.col("first_offset"), F.lit(0))
    above = F.greatest(F.col("last_offset") - F.col("limit") + 1, F.lit(0))
    return (
        spans.withColumn("first_sequence", F.when(ours, F.col("first_sequence") + below))
        .withColumn("stream", F.when(ours, F.col("stream")))
        .withColumn("sent_ns", F.when(below == 0, F.col("sent_ns")))
        .withColumns({"first_offset": F.col("first_offset") + below, "last_offset": F.col("last_offset") - above})
        .filter(F.col("first_offset") <= F.col("last_offset"))
        .select(
            "place", "stream", "first_sequence", "first_offset", "last_offset", "sentinel", "value_problem", "problem",
            "crc_ok", "broker", "segment", "position", "base_offset", "producer_id", "producer_epoch",
            "leader_epoch", "sent_ns",
        )
    )  # fmt: skip
