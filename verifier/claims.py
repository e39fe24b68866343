"""Claims: who says which value stands where; and what they sum up to, by value and by offset. Judges nothing.

A claim is one row (place, stream, sequence, offset, source): an acknowledgement, a certain failure, a value in the
final leader's log, or a read. ``ledger`` has all claims on one value in one row, ``positions`` all on one offset.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

#: What identifies a value.
VALUE = ["place", "stream", "sequence"]

#: Who makes a claim (column ``source``).
ACK, FAIL, LOG, READ = range(4)

#: A longer run of sequences is no honest history row; exploding it could take all memory.
LONGEST_RUN = 10_000_000


def all_claims(history: DataFrame, reader_bits: DataFrame, log: DataFrame) -> DataFrame:
    """Every claim on a judged partition. ``reader_bits``: run, process and ``bit`` of the final readers."""
    return reduce(DataFrame.unionByName, [_acks(history), _reads(history, reader_bits), _log_claims(log)])


def unfold(frame: DataFrame, first: str, last: str) -> DataFrame:
    """One row per member of a run, with ``step`` counting from 0."""
    return frame.withColumn("step", F.explode(F.sequence(F.lit(0).cast("bigint"), F.col(last) - F.col(first))))


def well_formed() -> Column:
    """Whether a history row's ranges make sense: both as long as each other, and of a possible length."""
    sequences = F.col("last_sequence") - F.col("first_sequence")
    offsets = F.col("last_offset") - F.col("first_offset")
    known = (F.col("first_offset") < 0) | (offsets == sequences)
    return (F.col("first_sequence") >= 0) & F.col("stream").isNotNull() & sequences.between(0, LONGEST_RUN) & known


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


def _reads(history: DataFrame, reader_bits: DataFrame) -> DataFrame:
    """What readers were handed, in both phases. ``bit`` is the reader's own in the final phase, else 0."""
    polls = history.filter((F.col("f") == "poll") & (F.col("type") == "ok") & (F.col("stream") >= 0) & well_formed())
    final_bit = F.when(F.col("phase") == "final", F.coalesce("bit", F.lit(0))).otherwise(0).cast("bigint")
    return (
        unfold(polls.join(F.broadcast(reader_bits), ["run", "process"], "left"), "first_sequence", "last_sequence")
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


def ledger_of(claims: DataFrame) -> DataFrame:
    """All claims on one value in one row: what was told, what is on disk, what was read."""

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


def positions_of(claims: DataFrame) -> DataFrame:
    """Two values differ exactly if their stream or their sequence does, so minima and maxima tell all that is asked."""
    read, logged = F.col("source") == READ, F.col("source") == LOG
    return (
        claims.filter(F.col("offset").isNotNull())
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
