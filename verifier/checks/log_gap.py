"""log-gap: something is missing from the middle of the log.

Definition. Below the final high watermark, in the final leader's log, (a) offsets that no batch covers, from the log
start to the high watermark; cause ``offsets``; or (b) sequences of a stream that were acknowledged and are missing,
while a later one of the stream is present; cause ``sequences``, one anomaly per stretch of missing sequences. Sequences
with the outcome ``info`` or ``fail`` may be absent. Batches missing on other replicas are ``log-divergence``.

    file: [0..9] [20..29]                                        offsets 10..19 are missing
    log: (s1/3) (s1/6), and s1/4, s1/5 were acknowledged         sequences 4..5 of s1 are missing
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per gap; ``offset`` or ``sequence`` is where it begins, ``size`` is its length."""
    return _offsets(tables).union(_sequences(tables))


def _offsets(tables: Tables) -> DataFrame:
    """Offsets without a batch: between batches, before the first, and after the last one up to the limit."""
    batches = tables.segments.filter(
        F.col("is_leader") & (F.col("kind") == "batch") & (F.col("base_offset") < F.col("limit"))
    ).select("place", "start", "base_offset", "next_offset")
    end = F.col("limit").alias("base_offset"), F.col("limit").alias("next_offset")
    ends = tables.replicas.filter("is_leader").select("place", "start", *end)
    before = (
        Window.partitionBy("place").orderBy("base_offset", "next_offset").rowsBetween(Window.unboundedPreceding, -1)
    )
    holes = (
        batches.union(ends)
        .withColumn("hole_start", F.greatest("start", F.max("next_offset").over(before)))
        .withColumn("size", F.col("base_offset") - F.col("hole_start"))
        .filter(F.col("size") > 0)
    )
    return anomalies(
        holes,
        cause=F.lit("offsets"),
        stream=None,
        sequence=None,
        offset="hole_start",
        size="size",
        detail=["hole_start", F.col("base_offset").alias("hole_end")],
    )


def _sequences(tables: Tables) -> DataFrame:
    key = ["place", "stream"]
    highest = tables.ledger.filter(F.col("copies") > 0).groupBy(*key).agg(F.max("sequence").alias("highest"))
    decidable = F.col("first_ack").isNotNull() | (F.col("from_offset") == 0)
    missing = (
        tables.ledger.filter(F.col("acked") & (F.col("copies") == 0) & decidable)
        .join(highest, key)
        .filter(F.col("sequence") < F.col("highest"))
    )
    # a sequence minus the number of missing ones before it is equal for consecutive sequences: one island per stretch
    before = Window.partitionBy(*key).orderBy("sequence").rowsBetween(Window.unboundedPreceding, -1)
    island = F.col("sequence") - F.coalesce(F.sum("values").over(before), F.lit(0))
    stretches = (
        missing.withColumn("island", island)
        .groupBy(*key, "island")
        .agg(
            F.min("sequence").alias("sequence"),
            F.max(F.col("sequence") + F.col("values") - 1).alias("last_sequence"),
            F.min("first_ack").alias("first_ack"),
            F.sum("values").alias("size"),
        )
    )
    return anomalies(stretches, cause=F.lit("sequences"), offset="first_ack", size="size", detail=["last_sequence"])
