"""log-reorder: the log has values or batches in an order in which they were not sent.

Definition. (a) In the final leader's log, a value (its first copy) comes after a value of its stream that the same
producer sent later (``verifier.checks.order``); cause ``values``. (b) In a file of any replica, a batch begins below an
offset that an earlier batch already reached; cause ``offsets``. Only below the limit up to which the replica may be
compared; if its partition never settled, anywhere among its sound batches.

    log: 8:(s1/5) 9:(s1/4)                          s1/4 comes after s1/5
    file: [0..9] [20..29] [10..19]                  the third batch goes back to offset 10
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.checks.order import late_values
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per value that comes too late, and one per batch that goes back."""
    placed = tables.ledger.filter(F.col("copies") > 0)
    values = anomalies(
        late_values(placed, "first_log"),
        cause=F.lit("values"),
        offset="first_log",
        count="values",
        detail=["after_sequence", "after_offset"],
    )
    return values.union(_batches(tables))


def _batches(tables: Tables) -> DataFrame:
    written = (
        Window.partitionBy("place", "broker").orderBy("segment", "position").rowsBetween(Window.unboundedPreceding, -1)
    )
    backwards = (
        tables.with_unsettled(
            tables.segments.filter((F.col("kind") == "batch") & (F.col("base_offset") < F.col("limit")))
        )
        .withColumn("reached", F.max("next_offset").over(written))
        .filter(F.col("base_offset") < F.col("reached"))
    )
    return anomalies(
        backwards,
        cause=F.lit("offsets"),
        stream=None,
        sequence=None,
        offset="base_offset",
        detail=["broker", "segment", "position", "base_offset", "next_offset", "reached"],
    )
