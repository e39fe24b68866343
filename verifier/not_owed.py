"""Values that readers of committed records are not owed, because their transaction was aborted: columns of the tables.

Owns the flags by which ``poll-skip``, ``int-poll-skip`` and ``unseen`` recognize such values. A value is *not owed* if
the final leader's log has its producer's ABORT marker after it, unless the producer's client knows that it committed:
then the marker is wrong, and readers were owed the value. Without transactions, the flags are constants and cost no
query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from verifier.transactions.model import AbortedRange

#: Values of the column ``fate`` of claims: aborted according to the log, committed according to the client; else null.
ABORTED, COMMITTED = 1, 2

_RANGE = ["place", "producer_id", "first_offset", "marker_offset"]
_KINDS = [pa.int32(), pa.int64(), pa.int64(), pa.int64()]
_SESSION = ["run", "process", "session"]
_TRANSACTION = ["run", "process", "op"]


def not_owed() -> Column:
    """Whether a value or an offset is not owed, by the ``fate`` of all claims on it."""
    return F.coalesce(F.max(F.col("fate") == ABORTED), F.lit(False)) & ~F.coalesce(
        F.max(F.col("fate") == COMMITTED), F.lit(False)
    )


def with_commits(own: DataFrame, history: DataFrame, *, is_transactional: bool) -> DataFrame:
    """Rows of histories with ``is_committed``: whether their client knows that their transaction was committed.

    ``history`` has all rows: those that end a transaction belong to no partition.
    """
    if not is_transactional:
        return own.withColumn("is_committed", F.lit(False))
    ended = history.filter((F.col("f") == "commit") & (F.col("type") == "ok") & (F.col("op") >= 0))
    known = ended.select(*_TRANSACTION, F.lit(True).alias("is_committed")).distinct()
    sends = F.when(F.col("f") == "send", F.col("op"))
    joined = own.withColumn("sent_in", sends).join(
        known.withColumnRenamed("op", "sent_in"), ["run", "process", "sent_in"], "left"
    )
    return joined.withColumn("is_committed", F.coalesce("is_committed", F.lit(False))).drop("sent_in")


def with_aborts(log: DataFrame, ranges: DataFrame | None) -> DataFrame:
    """Spans of the log with ``is_aborted``. ``ranges``: place, producer_id, first_offset, marker_offset."""
    if ranges is None:
        return log.withColumn("is_aborted", F.lit(False))
    # a producer has one transaction at a time: what began last before a span is what it may belong to
    begins = ranges.withColumn("begins", F.lit(True))
    order = (
        Window.partitionBy("place", "producer_id")
        .orderBy("first_offset", F.col("begins").isNull())
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    ends = F.last("marker_offset", ignorenulls=True).over(order)
    return (
        log.unionByName(begins, allowMissingColumns=True)
        .withColumn("is_aborted", F.coalesce(ends > F.col("first_offset"), F.lit(False)))
        .filter(F.col("begins").isNull())
        .drop("begins", "marker_offset")
    )


def with_isolation(jumps: DataFrame, history: DataFrame, *, is_transactional: bool) -> DataFrame:
    """Jumps with ``is_isolated``: whether their session is handed only what is committed."""
    if not is_transactional:
        return jumps.withColumn("is_isolated", F.lit(False))
    # all members of groups read only what is committed
    isolated = history.filter(F.col("f").isin("isolation", "member")).select(*_SESSION).distinct()
    joined = jumps.join(F.broadcast(isolated.withColumn("is_isolated", F.lit(True))), _SESSION, "left")
    return joined.withColumn("is_isolated", F.coalesce("is_isolated", F.lit(False)))


def aborted_table(
    spark: SparkSession, aborted: Sequence[tuple[str, AbortedRange]], places: Mapping[tuple[str, str, int], int]
) -> DataFrame | None:
    """What was aborted in judged partitions, by their numbers, for ``with_aborts``; None if nothing was."""
    rows = [
        (places[run, each.topic, each.partition], each.producer_id, each.first_offset, each.marker_offset)
        for run, each in aborted
        if (run, each.topic, each.partition) in places
    ]
    if not rows:
        return None
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), _KINDS, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(columns, names=_RANGE))
