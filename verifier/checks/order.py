"""Values after one of their stream that was sent later. Used by ``nonmonotonic-send`` and ``log-reorder``.

Order is guaranteed within one producer. When a fatal error ends a producer, the next one continues the stream, and what
the first had in flight may still arrive later: such a value is compared only with values of the same producer id. An
acknowledged value had arrived before its client sent anything under another id, so it is compared with all.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F


def late_values(placed: DataFrame, position: str, *, across_ids: bool = False) -> DataFrame:
    """What of the rows (of the ledger, each at its ``position``) comes after a later one of the same producer.

    ``across_ids``: acknowledged ones also behind a later one of any producer. ``after_sequence`` and ``after_offset``
    are the later one that stands first, and where that is.
    """

    def soonest_of(*key: str) -> Column:
        # from the end on: Spark computes a frame that reaches to the end once for each row
        order = Window.partitionBy("place", "stream", *key).orderBy(F.col("sequence").desc())
        first = F.min(F.struct(F.col(position).alias("offset"), "sequence"))
        return first.over(order.rowsBetween(Window.unboundedPreceding, -1))

    soonest = soonest_of("first_producer_id")
    if across_ids:
        soonest = F.when(F.col("acked"), soonest_of()).otherwise(soonest)
    # within a row sequences and positions rise together: late is what comes after the first of the later ones
    in_time = F.greatest(F.col("soonest.offset") - F.col(position) + 1, F.lit(0))
    return (
        placed.withColumn("soonest", soonest)
        .withColumn("in_time", in_time)
        .filter(F.col("soonest").isNotNull() & (F.col("in_time") < F.col("values")))
        .withColumn("sequence", F.col("sequence") + F.col("in_time"))
        .withColumn(position, F.col(position) + F.col("in_time"))
        .withColumn("values", F.col("values") - F.col("in_time"))
        .withColumn("after_sequence", F.col("soonest.sequence"))
        .withColumn("after_offset", F.col("soonest.offset"))
    )
