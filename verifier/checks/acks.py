"""Selects acknowledgements whose offsets and times are reliable, for ``realtime-order`` and ``verifier.checks.epochs``.

Owns this selection; finds no anomaly itself. A row of the history is one acknowledgement of consecutive values at
consecutive offsets. It counts if each of its values is in the final log exactly once, at exactly the offset that was
acknowledged. A value that was lost, moved or stored again has no single offset, and its temporary offset proves nothing
about the order of other values. Rows below the start of the judged range are left out for the same reason.

A row's ``invoke_ns`` is before each of its values was sent, and its ``complete_ns`` is after each was acknowledged.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from verifier.claims import well_formed
from verifier.tables import Tables


def standing(tables: Tables) -> DataFrame:
    """The rows that count, with place, stream, sequences, offsets and both times. Sentinels are included."""
    told = tables.history.filter(
        F.col("f").isin("send", "sentinel")
        & (F.col("type") == "ok")
        & well_formed()
        & (F.col("first_offset") >= F.col("from_offset"))
        & (F.col("first_offset") >= 0)
        & (F.col("invoke_ns") >= 0)
        & (F.col("complete_ns") >= 0)
    ).select(
        "place", "stream", "first_sequence", "last_sequence", "first_offset", "last_offset", "invoke_ns", "complete_ns",
        F.lit(False).alias("unsettled"),
    )  # fmt: skip
    in_place = (
        (F.col("copies") == 1) & (F.col("first_ack") == F.col("first_log")) & (F.col("last_ack") == F.col("first_log"))
    )
    unsettled = tables.ledger.filter(F.col("acked") & ~F.coalesce(in_place, F.lit(False))).select(
        "place",
        "stream",
        F.col("sequence").alias("first_sequence"),
        (F.col("sequence") + F.col("values") - 1).alias("last_sequence"),
        F.lit(True).alias("unsettled"),
    )
    # a row overlaps an unsettled piece if the piece begins before the row and reaches it, or begins within the row
    by_stream = Window.partitionBy("place", "stream")
    upto = by_stream.orderBy("first_sequence").rangeBetween(Window.unboundedPreceding, 0)
    # in descending order, because Spark evaluates a frame that reaches to the end again for each row
    behind = by_stream.orderBy(F.desc("first_sequence")).rangeBetween(Window.unboundedPreceding, -1)
    reached = F.max(F.when(F.col("unsettled"), F.col("last_sequence"))).over(upto)
    next_one = F.min(F.when(F.col("unsettled"), F.col("first_sequence"))).over(behind)
    touches = (F.col("reached") >= F.col("first_sequence")) | (F.col("next_one") <= F.col("last_sequence"))
    return (
        told.unionByName(unsettled, allowMissingColumns=True)
        .withColumns({"reached": reached, "next_one": next_one})
        .filter(~F.col("unsettled") & ~F.coalesce(touches, F.lit(False)))
        .drop("unsettled", "reached", "next_one")
    )
