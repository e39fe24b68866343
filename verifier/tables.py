"""The evidence as Spark DataFrames. Owns how rows of files become the tables that checks read; judges nothing.

Several runs can be judged in one job, and no table mixes them: ``place`` is one partition of one run, as a number
(``places`` has them all, in that order), so that keys are integers. A value is known by (place, stream, sequence).
Names of the tables, and what a row of each is:

- ``segments``   a file, batch or span of values of one replica (``verifier.segments.rows``), with what judging needs of
  its replica: ``is_leader`` (of the final leader), ``start`` and ``limit``, the offsets from which on and below
  which it may be compared, and the bounds of its headers (``verifier.bounds``).
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

Only partitions that the final phase found ``ok`` are judged: without a leader there is no log to judge by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from verifier.bounds import Bounds, bounds
from verifier.checks.polls import jumps_of
from verifier.claims import all_claims, deleted_claims, ledger_of, positions_of
from verifier.closing import due_ns
from verifier.deletions import Deletions
from verifier.evidence.run_model import FinalPartition, RunModel
from verifier.expectation import Expectation
from verifier.facts import ReaderReach, reader_masks
from verifier.transactions.model import AbortedRange
from verifier.wall_clock import ClockShift
from verifier.withheld import aborted_table, with_aborts, with_commits, with_isolation
from verifier.written_tables import written

#: How the rows of files name a partition; ``place`` stands for all three from here on.
NAMED = ["run", "topic", "partition"]


@dataclass(frozen=True, slots=True)
class Place:
    """One judged partition of one run; ``brokers`` are those of its replicas whose files were found.

    ``from_offset``: what was acknowledged or read below it was deleted on purpose, and its absence is no loss.
    ``judges_deleted``: whether clients may not contradict each other there either. They may where the settings allow
    that an election cuts off what was acknowledged: the epochs that would tell are deleted with the records.
    ``starts``: from where on each of the replicas is compared with the leader. ``due_ns``: see ``closing.due_ns``; -1
    where every acknowledgement tells its offset, so that nothing need be looked up. ``is_transactional``: the run's
    clients may use transactions.
    """

    run: str
    final: FinalPartition
    brokers: tuple[int, ...]
    from_offset: int
    judges_deleted: bool
    starts: tuple[int, ...]
    bounds: Bounds
    due_ns: int
    is_transactional: bool = False


@dataclass(frozen=True, slots=True)
class Tables:
    """All tables; the module says what they hold."""

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
    directory: Path | None = None
    kept: list[DataFrame] = field(default_factory=list)

    def made(self, frame: DataFrame, name: str) -> DataFrame:
        """The same rows, computed once (see ``_made``); anyone who owns the tables gives back what is ``kept``."""
        made = _made(frame, self.directory, name)
        self.kept.append(made)
        return made


def judged(
    run: str, model: RunModel, replicas: Set[tuple[str, int, int]], deletions: Deletions, shift: ClockShift
) -> list[Place]:
    """The partitions of a run that can be judged: their final state is known, and their leader's log is there.

    ``replicas`` are the (topic, partition, broker) of which any segment was found. Without the leader's files
    everything would look lost, though it is the evidence that is; so would what a compaction removed.
    """
    within = bounds(model, shift)
    judges_deleted = not Expectation(model.settings).can_allow("inconsistent-offsets")
    # all others are told where what they wrote stands
    placeless = model.settings.idempotence or model.settings.acks == "0"
    due = due_ns(model) if placeless else -1
    compacted = {topic.name for topic in model.topics if topic.is_compacted}
    return [
        _place(run, final, replicas, deletions, within, judges_deleted, due)
        for final in model.final
        if final.status == "ok"
        and final.high_watermark >= 0
        and (final.topic, final.partition, final.leader) in replicas
        and final.topic not in compacted
    ]


def _place(
    run: str,
    final: FinalPartition,
    replicas: Set[tuple[str, int, int]],
    deletions: Deletions,
    within: Bounds,
    judges_deleted: bool,
    due: int,
) -> Place:
    name, start = (final.topic, final.partition), final.log_start_offset
    brokers = tuple(broker for broker in _brokers(final) if (*name, broker) in replicas)
    # the leader's own start is what all are measured by
    starts = tuple(start if b == final.leader else deletions.compared_from(b, *name, start) for b in brokers)
    return Place(run, final, brokers, deletions.judged_from(*name, start), judges_deleted, starts, within, due)


def _brokers(final: FinalPartition) -> list[int]:
    return sorted({final.leader, *final.log_end_offsets})


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
    partitions = F.broadcast(_partitions(spark, places, readers))
    replicas = F.broadcast(_replicas(spark, places))
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
        directory=directory,
    )


def _made(frame: DataFrame, directory: Path | None, name: str) -> DataFrame:
    """The same rows, computed once."""
    return frame.cache() if directory is None else written(frame, directory / name)


def _partitions(spark: SparkSession, places: Sequence[Place], readers: Sequence[ReaderReach]) -> DataFrame:
    """One row per place; ``reader_mask`` has one bit for each final reader that reached the sentinel,
    ``isolated_mask`` one for each of them that is handed only what is committed."""
    masks = reader_masks(readers)
    isolated = reader_masks([reader for reader in readers if reader.is_isolated])
    rows = [
        {
            "run": place.run,
            "topic": place.final.topic,
            "partition": place.final.partition,
            "place": number,
            "high_watermark": place.final.high_watermark,
            "from_offset": place.from_offset,
            "judges_deleted": place.judges_deleted,
            "sentinel_offset": place.final.sentinel_offset,
            "due_ns": place.due_ns,
            "reader_mask": masks.get((place.run, place.final.topic, place.final.partition), 0),
            "isolated_mask": isolated.get((place.run, place.final.topic, place.final.partition), 0),
        }
        for number, place in enumerate(places)
    ]
    fields = [_field("run", "topic"), _field("partition", "place", kind=pa.int32())]
    numbers = ("high_watermark", "from_offset", "sentinel_offset", "due_ns", "reader_mask", "isolated_mask")
    fields.append(_field(*numbers, kind=pa.int64()))
    fields.append(_field("judges_deleted", kind=pa.bool_()))
    return _frame(spark, rows, fields)


def _replicas(spark: SparkSession, places: Sequence[Place]) -> DataFrame:
    """One row per replica of a place. ``limit``: the smaller of the high watermark and its own log end offset."""
    rows = [
        {
            "run": place.run,
            "topic": place.final.topic,
            "partition": place.final.partition,
            "place": number,
            "broker": broker,
            "is_leader": broker == place.final.leader,
            "limit": place.final.high_watermark
            if broker == place.final.leader
            else min(place.final.high_watermark, place.final.log_end_offsets[broker]),
            "start": start,
            "final_epoch": place.final.leader_epoch,
            "earliest_ms": place.bounds.earliest_ms,
            "latest_ms": place.bounds.latest_ms,
            "producer_ids_below": place.bounds.producer_ids_below,
            "begins_at_zero": place.bounds.begins_at_zero,
            "is_transactional": place.is_transactional,
        }
        for number, place in enumerate(places)
        for broker, start in zip(place.brokers, place.starts, strict=True)
    ]
    fields = [_field("run", "topic"), _field("partition", "place", "broker", kind=pa.int32())]
    fields.append(_field("is_leader", "begins_at_zero", "is_transactional", kind=pa.bool_()))
    numbers = ("limit", "start", "final_epoch", "earliest_ms", "latest_ms", "producer_ids_below")
    fields.append(_field(*numbers, kind=pa.int64()))
    return _frame(spark, rows, fields)


def _reader_bits(spark: SparkSession, readers: Sequence[ReaderReach]) -> DataFrame:
    own_bits = sorted({(reader.run, reader.process, reader.bit) for reader in readers})
    rows = [{"run": run, "process": process, "bit": bit} for run, process, bit in own_bits]
    return _frame(spark, rows, [_field("run", "process"), _field("bit", kind=pa.int64())])


def _drop_late_answers(spark: SparkSession, processes: Sequence[tuple[str, str]]) -> DataFrame:
    rows = [{"run": run, "process": process, "drops_late_answers": True} for run, process in processes]
    return _frame(spark, rows, [_field("run", "process"), _field("drops_late_answers", kind=pa.bool_())])


def _field(*names: str, kind: pa.DataType | None = None) -> list[tuple[str, pa.DataType]]:
    return [(name, kind or pa.string()) for name in names]


def _frame(
    spark: SparkSession, rows: Sequence[Mapping[str, object]], fields: list[list[tuple[str, pa.DataType]]]
) -> DataFrame:
    schema = pa.schema([pa.field(name, kind) for group in fields for name, kind in group])
    return spark.createDataFrame(pa.Table.from_pylist([dict(row) for row in rows], schema=schema))


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
