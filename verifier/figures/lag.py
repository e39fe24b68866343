"""Measures read lag: the time from a value's acknowledgement to its first delivery to a live reader.

Owns one Spark query and its results. The idea is Jepsen's realtime lag. Kafka guarantees no reader a maximum delay, so
a lag is shown, and is not an anomaly. It is measured at the last value of each acknowledgement. Once a reader has that
value, it has all values of the acknowledgement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pyspark.sql import Column, Window
from pyspark.sql import functions as F

from verifier.claims import well_formed
from verifier.facts import ReadLag
from verifier.tables import Tables


def read_lags(tables: Tables, readers: Sequence[str]) -> dict[str, tuple[ReadLag, ...]]:
    """By run: the lag over all values, and in each partition. ``readers`` are the processes of the live readers.

    A value that was read before its producer received the acknowledgement has a lag of 0.
    """
    if not readers:
        return {}
    told = tables.history.filter(well_formed() & (F.col("type") == "ok") & (F.col("complete_ns") >= 0))
    is_ack = F.col("f") == "send"
    rows = told.filter(is_ack | ((F.col("f") == "poll") & (F.col("phase") == "load"))).select(
        "run", "place", "stream", "process", "complete_ns", "first_sequence", "last_sequence", is_ack.alias("is_ack"),
        F.when(is_ack, F.col("last_sequence")).otherwise(F.col("first_sequence")).alias("at"),
    )  # fmt: skip
    # the reader's last row that begins at or before the value: if it reaches the value, it delivered it
    upto = (
        Window.partitionBy("place", "stream")
        .orderBy("at", "is_ack")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    handed = F.struct("last_sequence", F.col("complete_ns").alias("ns"))
    lags = []
    for number, process in enumerate(readers):
        by_this = F.when(~F.col("is_ack") & (F.col("process") == process), handed)
        rows = rows.withColumn(f"by_{number}", F.last(by_this, ignorenulls=True).over(upto))
        brought = F.col(f"by_{number}.last_sequence") >= F.col("at")
        lag = F.greatest(F.col(f"by_{number}.ns") - F.col("complete_ns"), F.lit(0))
        lags.append(F.when(brought, lag))
    first: Column = lags[0] if len(lags) == 1 else F.least(*lags)
    measured = rows.filter("is_ack").withColumn("lag", first)
    values = F.col("last_sequence") - F.col("first_sequence") + 1
    worst = F.struct("lag", "stream", F.col("at").alias("sequence"))
    found: dict[str, list[ReadLag]] = defaultdict(list)
    for row in (
        measured.rollup("run", "place")
        .agg(
            F.percentile_approx("lag", [0.5, 0.99], 1000).alias("quantiles"),
            F.max(F.when(F.col("lag").isNotNull(), worst)).alias("worst"),
            F.sum(F.when(F.col("lag").isNull(), values).otherwise(0)).alias("unread"),
        )
        .filter(F.col("run").isNotNull())
        .collect()
    ):
        final = None if row["place"] is None else tables.places[row["place"]].final
        p50, p99 = row["quantiles"] or (None, None)
        worst_ns, stream, sequence = row["worst"] or (None, None, None)
        topic, partition = (None, None) if final is None else (final.topic, final.partition)
        found[row["run"]].append(ReadLag(topic, partition, p50, p99, worst_ns, stream, sequence, row["unread"]))
    return {
        run: tuple(sorted(each, key=lambda lag: (lag.topic or "", lag.partition or 0, lag.topic is not None)))
        for run, each in found.items()
    }
