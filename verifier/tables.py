"""The evidence as Spark DataFrames. Owns how rows of files become the tables that checks read; judges nothing.

Every table has the column ``run``: several runs can be judged in one job, and no table mixes them. A value is known
by (run, topic, partition, stream, sequence). Names of the tables, and what a row of each is:

- ``segments``   a file, batch or run of values of one replica (``verifier.segments.rows``), with what judging needs of
  its replica: ``is_leader`` (of the final leader) and ``limit``, the offset below which it may be compared.
- ``history``    a row of a history, as it was written, and one per file that says how it ended.
- ``log``        one value of the final leader's log, between its start and its final high watermark, with the batch.
- ``claims``     one statement "this value stands at this offset": by ``ack``, ``log`` or ``read``; a ``fail`` says that
  the value was certainly not sent. An acknowledgement without an offset has ``offset`` null.
- ``ledger``     all claims on one value in one row: what was told, what is on disk, what was read.
- ``positions``  all claims on one offset in one row.
- ``reserved``   the sequences that may have been sent, per stream, as few disjoint ranges.

Only partitions that the final phase found ``ok`` are judged: without a leader there is no log to judge by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from verifier.evidence.run_model import FinalPartition
from verifier.facts import ReaderReach, ReservedRange

PARTITION = ["run", "topic", "partition"]
VALUE = [*PARTITION, "stream", "sequence"]

#: A longer run of sequences is no honest history row; exploding it could take all memory.
LONGEST_RUN = 10_000_000


@dataclass(frozen=True, slots=True)
class RunFinals:
    """The final state of one run's partitions."""

    run: str
    partitions: Sequence[FinalPartition]


@dataclass(frozen=True, slots=True)
class Tables:
    """All tables; the module says what they hold."""

    finals: DataFrame
    replicas: DataFrame
    segments: DataFrame
    history: DataFrame
    log: DataFrame
    claims: DataFrame
    ledger: DataFrame
    positions: DataFrame
    reserved: DataFrame


def build(
    spark: SparkSession,
    segments: DataFrame,
    history: DataFrame,
    finals: Sequence[RunFinals],
    readers: Sequence[ReaderReach],
    reserved: Sequence[ReservedRange],
) -> Tables:
    """Join and unfold the raw rows. ``segments`` and ``history`` should be cached: several tables read them."""
    partitions = F.broadcast(_finals(spark, finals, readers))
    replicas = F.broadcast(_replicas(spark, finals))
    judged = segments.join(replicas, [*PARTITION, "broker"])
    log = _log(judged)
    claims = reduce(
        DataFrame.unionByName,
        [_acks(history, partitions), _reads(spark, history, partitions, readers), _log_claims(log)],
    )
    ledger = _ledger(claims).join(partitions, PARTITION).cache()
    return Tables(
        finals=partitions,
        replicas=replicas,
        segments=judged,
        history=history,
        log=log,
        claims=claims,
        ledger=ledger,
        positions=_positions(claims),
        reserved=F.broadcast(_reserved(spark, reserved)),
    )


def _is_judged(partition: FinalPartition) -> bool:
    return partition.status == "ok" and partition.leader >= 0 and partition.high_watermark >= 0


def _finals(spark: SparkSession, finals: Sequence[RunFinals], readers: Sequence[ReaderReach]) -> DataFrame:
    """One row per judged partition; ``reader_mask`` has one bit for each final reader that reached the sentinel."""
    masks: dict[tuple[str, str, int], int] = {}
    for reader in readers:
        if reader.complete:
            key = (reader.run, reader.topic, reader.partition)
            masks[key] = masks.get(key, 0) | reader.bit
    rows: list[dict[str, object]] = [
        {
            "run": each.run,
            "topic": partition.topic,
            "partition": partition.partition,
            "leader": partition.leader,
            "high_watermark": partition.high_watermark,
            "log_start_offset": partition.log_start_offset,
            "sentinel_offset": partition.sentinel_offset,
            "reader_mask": masks.get((each.run, partition.topic, partition.partition), 0),
        }
        for each in finals
        for partition in each.partitions
        if _is_judged(partition)
    ]
    fields = [_field("run", "topic"), _field("partition", "leader", kind=pa.int32())]
    fields.append(_field("high_watermark", "log_start_offset", "sentinel_offset", "reader_mask", kind=pa.int64()))
    return _frame(spark, rows, fields)


def _replicas(spark: SparkSession, finals: Sequence[RunFinals]) -> DataFrame:
    """One row per replica of a judged partition. ``limit``: min of the high watermark and its own log end offset."""
    rows = [
        {
            "run": each.run,
            "topic": partition.topic,
            "partition": partition.partition,
            "broker": broker,
            "is_leader": broker == partition.leader,
            "limit": partition.high_watermark
            if broker == partition.leader
            else min(partition.high_watermark, log_end_offset),
            "start": partition.log_start_offset,
        }
        for each in finals
        for partition in each.partitions
        if _is_judged(partition)
        for broker, log_end_offset in sorted({partition.leader: -1, **partition.log_end_offsets}.items())
    ]
    fields = [_field("run", "topic"), _field("partition", "broker", kind=pa.int32())]
    fields += [_field("is_leader", kind=pa.bool_()), _field("limit", "start", kind=pa.int64())]
    return _frame(spark, rows, fields)


def _field(*names: str, kind: pa.DataType | None = None) -> list[tuple[str, pa.DataType]]:
    return [(name, kind or pa.string()) for name in names]


def _frame(
    spark: SparkSession, rows: list[dict[str, object]], fields: list[list[tuple[str, pa.DataType]]]
) -> DataFrame:
    schema = pa.schema([pa.field(name, kind) for group in fields for name, kind in group])
    return spark.createDataFrame(pa.Table.from_pylist([dict(row) for row in rows], schema=schema))


def unfold(frame: DataFrame, first: str, last: str) -> DataFrame:
    """One row per member of a run, with ``step`` counting from 0."""
    return frame.withColumn("step", F.explode(F.sequence(F.lit(0).cast("bigint"), F.col(last) - F.col(first))))


def well_formed() -> Column:
    """Whether a history row's ranges make sense: both as long as each other, and of a possible length."""
    sequences = F.col("last_sequence") - F.col("first_sequence")
    offsets = F.col("last_offset") - F.col("first_offset")
    known = (F.col("first_offset") < 0) | (offsets == sequences)
    return (F.col("first_sequence") >= 0) & F.col("stream").isNotNull() & sequences.between(0, LONGEST_RUN) & known


def _log(segments: DataFrame) -> DataFrame:
    runs = segments.filter(F.col("is_leader") & (F.col("kind") == "run"))
    values = unfold(runs, "first_offset", "last_offset")
    ours = F.col("value_problem").isNull() | (F.col("value_problem") == "payload")
    return (
        values.withColumn("offset", F.col("first_offset") + F.col("step"))
        .filter((F.col("offset") >= F.col("start")) & (F.col("offset") < F.col("limit")))
        .withColumn("sequence", F.when(ours, F.col("first_sequence") + F.col("step")))
        .withColumn("stream", F.when(ours, F.col("stream")))
        .select(
            *VALUE, "offset", "sentinel", "value_problem", "problem", "crc_ok", "broker", "segment", "position",
            "base_offset", "next_offset", "leader_epoch", "producer_id", "producer_epoch", "base_sequence",
        )
    )  # fmt: skip


def _log_claims(log: DataFrame) -> DataFrame:
    bit = F.lit(0).cast("bigint").alias("bit")
    return log.select(*VALUE, "offset", F.lit("log").alias("source"), bit, "sentinel", "producer_id", "producer_epoch")


def _no_identity() -> list[Column]:
    """Only copies in the log carry a producer id that counts: there it decides who appended."""
    return [F.lit(None).cast("bigint").alias("producer_id"), F.lit(None).cast("int").alias("producer_epoch")]


def _acks(history: DataFrame, partitions: DataFrame) -> DataFrame:
    """Acknowledgements and certain failures; an acknowledged offset below the log's start is no longer judged."""
    told = history.filter(F.col("f").isin("send", "sentinel") & F.col("type").isin("ok", "fail") & well_formed())
    known = F.col("first_offset") >= 0
    offset = F.when(known & (F.col("type") == "ok"), F.col("first_offset") + F.col("step"))
    return (
        unfold(told, "first_sequence", "last_sequence")
        .withColumn("offset", offset)
        .withColumn("sequence", F.col("first_sequence") + F.col("step"))
        .withColumn("source", F.when(F.col("type") == "ok", "ack").otherwise("fail"))
        .withColumn("bit", F.lit(0).cast("bigint"))
        .withColumn("sentinel", F.col("f") == "sentinel")
        .join(partitions.select(*PARTITION, "log_start_offset"), PARTITION)
        .filter(F.col("offset").isNull() | (F.col("offset") >= F.col("log_start_offset")))
        .select(*VALUE, "offset", "source", "bit", "sentinel", *_no_identity())
    )


def _reads(spark: SparkSession, history: DataFrame, partitions: DataFrame, readers: Sequence[ReaderReach]) -> DataFrame:
    """What readers were handed, in both phases. ``bit`` is the reader's own in the final phase, else 0."""
    polls = history.filter((F.col("f") == "poll") & (F.col("type") == "ok") & (F.col("stream") >= 0) & well_formed())
    bits = _frame(
        spark,
        [
            {"run": run, "process": process, "bit": bit}
            for run, process, bit in sorted({(r.run, r.process, r.bit) for r in readers})
        ],
        [_field("run", "process"), _field("bit", kind=pa.int64())],
    )
    final_bit = F.when(F.col("phase") == "final", F.coalesce("bit", F.lit(0))).otherwise(0).cast("bigint")
    return (
        unfold(polls.join(F.broadcast(bits), ["run", "process"], "left"), "first_sequence", "last_sequence")
        .withColumn("offset", F.when(F.col("first_offset") >= 0, F.col("first_offset") + F.col("step")))
        .withColumn("sequence", F.col("first_sequence") + F.col("step"))
        .withColumn("bit", final_bit)
        .join(partitions.select(*PARTITION, "log_start_offset"), PARTITION)
        .filter(F.col("offset").isNull() | (F.col("offset") >= F.col("log_start_offset")))
        .select(*VALUE, "offset", F.lit("read").alias("source"), "bit", F.lit(False).alias("sentinel"), *_no_identity())
    )


def _ledger(claims: DataFrame) -> DataFrame:
    def is_from(source: str) -> Column:
        return F.col("source") == source

    def offset(source: str) -> Column:
        return F.when(is_from(source), F.col("offset"))

    return (
        claims.filter(F.col("stream").isNotNull())
        .groupBy(*VALUE)
        .agg(
            F.max(is_from("ack")).alias("acked"),
            F.max(is_from("fail")).alias("failed"),
            F.min(offset("ack")).alias("first_ack"),
            F.max(offset("ack")).alias("last_ack"),
            F.count(offset("log")).alias("copies"),
            F.min(offset("log")).alias("first_log"),
            F.max(offset("log")).alias("last_log"),
            F.count(F.when(is_from("read"), 1)).alias("reads"),
            F.min(offset("read")).alias("first_read"),
            F.max(offset("read")).alias("last_read"),
            F.bit_or("bit").alias("seen"),
            F.max("sentinel").alias("sentinel"),
            F.min_by("producer_id", offset("log")).alias("first_producer_id"),
            F.min("producer_id").alias("lowest_producer_id"),
            F.max("producer_id").alias("highest_producer_id"),
            F.min("producer_epoch").alias("lowest_producer_epoch"),
            F.max("producer_epoch").alias("highest_producer_epoch"),
        )
    )


def _positions(claims: DataFrame) -> DataFrame:
    """Two values differ exactly if their stream or their sequence does, so minima and maxima tell all that is asked."""
    read, logged = F.col("source") == "read", F.col("source") == "log"
    return (
        claims.filter(F.col("offset").isNotNull() & (F.col("source") != "fail"))
        .groupBy(*PARTITION, "offset")
        .agg(
            F.min("stream").alias("lowest_stream"),
            F.max("stream").alias("highest_stream"),
            F.min("sequence").alias("lowest_sequence"),
            F.max("sequence").alias("highest_sequence"),
            F.max(F.col("source") == "ack").alias("acked"),
            F.max(read).alias("read"),
            F.max(logged).alias("logged"),
            F.max(F.when(logged, F.col("stream"))).alias("log_stream"),
            F.max(F.when(logged, F.col("sequence"))).alias("log_sequence"),
            F.min(F.when(read, F.col("stream"))).alias("lowest_read_stream"),
            F.max(F.when(read, F.col("stream"))).alias("highest_read_stream"),
            F.min(F.when(read, F.col("sequence"))).alias("lowest_read_sequence"),
            F.max(F.when(read, F.col("sequence"))).alias("highest_read_sequence"),
        )
    )


def _reserved(spark: SparkSession, reserved: Sequence[ReservedRange]) -> DataFrame:
    rows = [
        {
            "run": each.run,
            "topic": each.topic,
            "partition": each.partition,
            "stream": each.stream,
            "first_reserved": each.first_sequence,
            "last_reserved": each.last_sequence,
        }
        for each in reserved
    ]
    fields = [_field("run", "topic"), _field("partition", kind=pa.int32())]
    return _frame(spark, rows, [*fields, _field("stream", "first_reserved", "last_reserved", kind=pa.int64())])
