"""The evidence as Spark DataFrames. Owns how rows of files become the tables that checks read; judges nothing.

Several runs can be judged in one job, and no table mixes them: ``place`` is one partition of one run, as a number
(``places`` has them all, in that order), so that keys are integers. A value is known by (place, stream, sequence).
Names of the tables, and what a row of each is:

- ``segments``   a file, batch or run of values of one replica (``verifier.segments.rows``), with what judging needs of
  its replica: ``is_leader`` (of the final leader) and ``limit``, the offset below which it may be compared.
- ``history``    a row of a history that concerns a judged partition, as it was written.
- ``log``        one value of the final leader's log, between its start and its final high watermark, with the batch.
- ``claims``     one statement "this value stands at this offset": by ``ACK``, ``LOG`` or ``READ``; a ``FAIL`` says that
  the value was certainly not sent. An acknowledgement without an offset has ``offset`` null.
- ``ledger``     all claims on one value in one row: what was told, what is on disk, what was read.
- ``positions``  all claims on one offset in one row.
- ``reserved``   the sequences that may have been sent, per stream, as few disjoint ranges.

Only partitions that the final phase found ``ok`` are judged: without a leader there is no log to judge by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from verifier.evidence.run_model import FinalPartition
from verifier.facts import ReaderReach, ReservedRange

#: How the rows of files name a partition; ``place`` stands for all three from here on.
NAMED = ["run", "topic", "partition"]
VALUE = ["place", "stream", "sequence"]

#: Who makes a claim (column ``source``).
ACK, FAIL, LOG, READ = range(4)

#: A longer run of sequences is no honest history row; exploding it could take all memory.
LONGEST_RUN = 10_000_000


@dataclass(frozen=True, slots=True)
class Place:
    """One judged partition of one run."""

    run: str
    final: FinalPartition


@dataclass(frozen=True, slots=True)
class Tables:
    """All tables; the module says what they hold."""

    places: Sequence[Place]
    replicas: DataFrame
    segments: DataFrame
    history: DataFrame
    log: DataFrame
    claims: DataFrame
    ledger: DataFrame
    positions: DataFrame
    reserved: DataFrame


def judged(run: str, finals: Sequence[FinalPartition]) -> list[Place]:
    """The partitions of a run that can be judged: those whose final state is known."""
    return [
        Place(run, final)
        for final in finals
        if final.status == "ok" and final.leader >= 0 and final.high_watermark >= 0
    ]


def build(
    spark: SparkSession,
    segments: DataFrame,
    history: DataFrame,
    places: Sequence[Place],
    readers: Sequence[ReaderReach],
    reserved: Sequence[ReservedRange],
) -> Tables:
    """Join and unfold the raw rows. ``segments`` and ``history`` should be cached: several tables read them."""
    partitions = F.broadcast(_partitions(spark, places, readers))
    replicas = F.broadcast(_replicas(spark, places))
    own_segments = segments.join(replicas, [*NAMED, "broker"]).drop(*NAMED)
    names = partitions.select(*NAMED, "place", "log_start_offset")
    own_history = history.join(names, NAMED)
    log = _log(own_segments)
    claims = reduce(DataFrame.unionByName, [_acks(own_history), _reads(spark, own_history, readers), _log_claims(log)])
    ledger = _ledger(claims).join(partitions.drop(*NAMED), "place").cache()
    return Tables(
        places=places,
        replicas=replicas.drop(*NAMED),
        segments=own_segments,
        history=own_history.drop("topic", "partition"),
        log=log,
        claims=claims,
        ledger=ledger,
        positions=_positions(claims),
        reserved=F.broadcast(_reserved(spark, places, reserved)),
    )


def _partitions(spark: SparkSession, places: Sequence[Place], readers: Sequence[ReaderReach]) -> DataFrame:
    """One row per place; ``reader_mask`` has one bit for each final reader that reached the sentinel."""
    masks: dict[tuple[str, str, int], int] = {}
    for reader in readers:
        if reader.complete:
            key = (reader.run, reader.topic, reader.partition)
            masks[key] = masks.get(key, 0) | reader.bit
    rows = [
        {
            "run": place.run,
            "topic": place.final.topic,
            "partition": place.final.partition,
            "place": number,
            "high_watermark": place.final.high_watermark,
            "log_start_offset": place.final.log_start_offset,
            "sentinel_offset": place.final.sentinel_offset,
            "reader_mask": masks.get((place.run, place.final.topic, place.final.partition), 0),
        }
        for number, place in enumerate(places)
    ]
    fields = [_field("run", "topic"), _field("partition", "place", kind=pa.int32())]
    fields.append(_field("high_watermark", "log_start_offset", "sentinel_offset", "reader_mask", kind=pa.int64()))
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
            else min(place.final.high_watermark, log_end_offset),
            "start": place.final.log_start_offset,
        }
        for number, place in enumerate(places)
        for broker, log_end_offset in sorted({place.final.leader: -1, **place.final.log_end_offsets}.items())
    ]
    fields = [_field("run", "topic"), _field("partition", "place", "broker", kind=pa.int32())]
    fields += [_field("is_leader", kind=pa.bool_()), _field("limit", "start", kind=pa.int64())]
    return _frame(spark, rows, fields)


def _field(*names: str, kind: pa.DataType | None = None) -> list[tuple[str, pa.DataType]]:
    return [(name, kind or pa.string()) for name in names]


def _frame(
    spark: SparkSession, rows: Sequence[Mapping[str, object]], fields: list[list[tuple[str, pa.DataType]]]
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
    return log.select(*VALUE, "offset", F.lit(LOG).alias("source"), bit, "sentinel", "producer_id", "producer_epoch")


def _no_identity() -> list[Column]:
    """Only copies in the log carry a producer id that counts: there it decides who appended."""
    return [F.lit(None).cast("bigint").alias("producer_id"), F.lit(None).cast("int").alias("producer_epoch")]


def _acks(history: DataFrame) -> DataFrame:
    """Acknowledgements and certain failures; an acknowledged offset below the log's start is no longer judged."""
    told = history.filter(F.col("f").isin("send", "sentinel") & F.col("type").isin("ok", "fail") & well_formed())
    known = (F.col("first_offset") >= 0) & (F.col("type") == "ok")
    return (
        unfold(told, "first_sequence", "last_sequence")
        .withColumn("offset", F.when(known, F.col("first_offset") + F.col("step")))
        .filter(_not_trimmed())
        .select(
            "place",
            "stream",
            (F.col("first_sequence") + F.col("step")).alias("sequence"),
            "offset",
            F.when(F.col("type") == "ok", ACK).otherwise(FAIL).alias("source"),
            F.lit(0).cast("bigint").alias("bit"),
            (F.col("f") == "sentinel").alias("sentinel"),
            *_no_identity(),
        )
    )


def _reads(spark: SparkSession, history: DataFrame, readers: Sequence[ReaderReach]) -> DataFrame:
    """What readers were handed, in both phases. ``bit`` is the reader's own in the final phase, else 0."""
    polls = history.filter((F.col("f") == "poll") & (F.col("type") == "ok") & (F.col("stream") >= 0) & well_formed())
    own_bits = sorted({(reader.run, reader.process, reader.bit) for reader in readers})
    bits = _frame(
        spark,
        [{"run": run, "process": process, "bit": bit} for run, process, bit in own_bits],
        [_field("run", "process"), _field("bit", kind=pa.int64())],
    )
    final_bit = F.when(F.col("phase") == "final", F.coalesce("bit", F.lit(0))).otherwise(0).cast("bigint")
    return (
        unfold(polls.join(F.broadcast(bits), ["run", "process"], "left"), "first_sequence", "last_sequence")
        .withColumn("offset", F.when(F.col("first_offset") >= 0, F.col("first_offset") + F.col("step")))
        .filter(_not_trimmed())
        .select(
            "place",
            "stream",
            (F.col("first_sequence") + F.col("step")).alias("sequence"),
            "offset",
            F.lit(READ).alias("source"),
            final_bit.alias("bit"),
            F.lit(False).alias("sentinel"),
            *_no_identity(),
        )
    )


def _not_trimmed() -> Column:
    return F.col("offset").isNull() | (F.col("offset") >= F.col("log_start_offset"))


def _ledger(claims: DataFrame) -> DataFrame:
    def is_from(source: int) -> Column:
        return F.col("source") == source

    def offset(source: int) -> Column:
        return F.when(is_from(source), F.col("offset"))

    return (
        claims.filter(F.col("stream").isNotNull())
        .groupBy(*VALUE)
        .agg(
            F.max(is_from(ACK)).alias("acked"),
            F.max(is_from(FAIL)).alias("failed"),
            F.min(offset(ACK)).alias("first_ack"),
            F.max(offset(ACK)).alias("last_ack"),
            F.count(offset(LOG)).alias("copies"),
            F.min(offset(LOG)).alias("first_log"),
            F.max(offset(LOG)).alias("last_log"),
            F.count(F.when(is_from(READ), 1)).alias("reads"),
            F.min(offset(READ)).alias("first_read"),
            F.max(offset(READ)).alias("last_read"),
            F.bit_or("bit").alias("seen"),
            F.max("sentinel").alias("sentinel"),
            F.min_by("producer_id", offset(LOG)).alias("first_producer_id"),
            F.min("producer_id").alias("lowest_producer_id"),
            F.max("producer_id").alias("highest_producer_id"),
            F.min("producer_epoch").alias("lowest_producer_epoch"),
            F.max("producer_epoch").alias("highest_producer_epoch"),
        )
    )


def _positions(claims: DataFrame) -> DataFrame:
    """Two values differ exactly if their stream or their sequence does, so minima and maxima tell all that is asked."""
    read, logged = F.col("source") == READ, F.col("source") == LOG
    return (
        claims.filter(F.col("offset").isNotNull() & (F.col("source") != FAIL))
        .groupBy("place", "offset")
        .agg(
            F.min("stream").alias("lowest_stream"),
            F.max("stream").alias("highest_stream"),
            F.min("sequence").alias("lowest_sequence"),
            F.max("sequence").alias("highest_sequence"),
            F.max(F.col("source") == ACK).alias("acked"),
            F.max(read).alias("read"),
            F.max(logged).alias("logged"),
            *(
                extreme(F.when(whose, F.col(name))).alias(f"{word}_{who}_{name}")
                for who, whose in (("log", logged), ("read", read))
                for name in ("stream", "sequence")
                for word, extreme in (("lowest", F.min), ("highest", F.max))
            ),
        )
    )


def _reserved(spark: SparkSession, places: Sequence[Place], reserved: Sequence[ReservedRange]) -> DataFrame:
    numbers = {(place.run, place.final.topic, place.final.partition): number for number, place in enumerate(places)}
    rows = [
        {
            "place": numbers[each.run, each.topic, each.partition],
            "stream": each.stream,
            "first_reserved": each.first_sequence,
            "last_reserved": each.last_sequence,
        }
        for each in reserved
        if (each.run, each.topic, each.partition) in numbers
    ]
    fields = [_field("place", kind=pa.int32()), _field("stream", "first_reserved", "last_reserved", kind=pa.int64())]
    return _frame(spark, rows, fields)
