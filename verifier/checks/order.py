"""Finds values that come after a later value of their stream, for ``nonmonotonic-send`` and ``log-reorder``.

Owns this comparison; the checks own the positions. Order is guaranteed only within one producer. If a fatal error ends
a producer, the next one continues the stream, and values that the first one had in flight may still arrive later. So a
value is compared only with values of the same producer id. But an acknowledged value had arrived before its client sent
anything under another id, so it can be compared with all values of the stream.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F


def late_values(placed: DataFrame, position: str, *, across_ids: bool = False) -> DataFrame:
    """The values in ``placed`` whose position is above that of a later value of the same producer.

    ``placed`` has rows of the ledger; ``position`` is the column with their positions, and rows are cut to the late
    values. ``across_ids``: acknowledged values are compared with later values of all producers. ``after_sequence`` and
    ``after_offset`` are the later value with the lowest position, and that position.
    """

    def soonest_of(*key: str) -> Column:
        # in descending order, because Spark evaluates a frame that reaches to the end again for each row
        order = Window.partitionBy("place", "stream", *key).orderBy(F.col("sequence").desc())
        first = F.min(F.struct(F.col(position).alias("offset"), "sequence"))
        return first.over(order.rowsBetween(Window.unboundedPreceding, -1))

    soonest = soonest_of("first_producer_id")
    if across_ids:
        soonest = F.when(F.col("acked"), soonest_of()).otherwise(soonest)
    # within a row, sequences and positions rise together, so the late values are at the end of the row
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
