"""Values that come after one of their stream that was sent later. Used by ``nonmonotonic-send`` and ``log-reorder``.

Order is promised within one producer. When a fatal error ends a producer, the next one continues the stream, and what
the first had in flight may still arrive behind it: values are compared only with those of the same producer id.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F


def late_values(placed: DataFrame, position: str) -> DataFrame:
    """The rows (of the ledger, each at its ``position``) before which a later one of the same producer stands.

    ``after_sequence`` and ``after_offset`` are the highest sequence before it, and where that stands.
    """
    before = (
        Window.partitionBy("place", "stream", "first_producer_id")
        .orderBy(position, "sequence")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    highest = F.max(F.struct("sequence", F.col(position).alias("offset"))).over(before)
    return (
        placed.withColumn("highest", highest)
        .filter(F.col("highest.sequence") > F.col("sequence"))
        .withColumn("after_sequence", F.col("highest.sequence"))
        .withColumn("after_offset", F.col("highest.offset"))
    )
