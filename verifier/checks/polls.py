"""Finds where readers jumped between deliveries, for the four checks of polls.

Owns the jumps and how they become anomalies; the checks only choose among them. Whole rows are compared: a row covers
consecutive offsets, and the next row of the same session and partition must begin right after it. A session begins at
the offset of its ``assign``, and continues at the offset of a ``seek``. A session without either is judged from its
second row on. A later session of the same process may begin lower, but never above the position that the process had
reached, since it would skip the offsets in between. Rows with the same ``op`` were returned by one poll.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from verifier.checks.common import anomalies

#: The columns that identify a reader's session in a partition.
_WHOSE = ("place", "process", "session")

#: The columns that show whether an unclean election moved the reader.
_BEFORE = ("before_ns", "complete_ns", "had_stream", "had_sequence")


def jumps_of(history: DataFrame) -> DataFrame:
    """The rows of the history that jump: deliveries and assignments at an unexpected offset.

    A delivery must begin right after the position of its session. An assignment must not begin above the position that
    the process had reached in any session. ``expected`` is that position, and ``inside`` says whether the previous row
    came from the same poll. ``before_ns`` is when the reader reached the position, and ``had_stream`` and
    ``had_sequence`` are the last value that it received.
    """
    has_offsets = (F.col("first_offset") >= 0) & (F.col("last_offset") >= F.col("first_offset"))
    moves = F.col("f").isin("assign", "seek") & (F.col("first_offset") >= 0)
    delivered = (F.col("f") == "poll") & (F.col("type") == "ok") & has_offsets
    assigned = F.col("f") == "assign"
    order = Window.partitionBy(*_WHOSE).orderBy("row")
    position = F.struct("next_offset", "complete_ns", "had_stream", "had_sequence")
    before = F.lag(F.struct("f", "op", position.alias("position"))).over(order)
    of_process = Window.partitionBy("place", "process").orderBy("row")
    reached = F.lag(position).over(of_process)
    same_op = (F.col("op") >= 0) & (F.col("before.f") == "poll") & (F.col("before.op") == F.col("op"))
    return (
        history.filter(delivered | moves)
        .select(
            "run", *_WHOSE, "row", "f", "op", "phase", "stream", "first_sequence", "first_offset", "last_offset",
            "complete_ns",
            F.when(moves, F.col("first_offset")).otherwise(F.col("last_offset") + 1).alias("next_offset"),
            F.when(delivered & (F.col("stream") >= 0), F.col("stream")).alias("had_stream"),
            F.when(delivered & (F.col("stream") >= 0), F.col("last_sequence")).alias("had_sequence"),
        )
        .withColumn("before", before)
        .withColumn("reached", reached)
        .withColumn("position", F.when(assigned, F.col("reached")).otherwise(F.col("before.position")))
        .withColumns({"expected": F.col("position.next_offset"), "before_ns": F.col("position.complete_ns")})
        .withColumns({name: F.col(f"position.{name}") for name in ("had_stream", "had_sequence")})
        .withColumn("inside", F.when(assigned, F.lit(False)).otherwise(same_op))
        .filter(
            ((F.col("f") == "poll") & (F.col("first_offset") != F.col("expected")))
            | (assigned & (F.col("first_offset") > F.col("expected")))
        )
        .select(
            "run", *_WHOSE, "row", "f", "inside", "phase", "stream", "first_sequence", "first_offset", "last_offset",
            "expected", "before_ns", "complete_ns", "had_stream", "had_sequence",
        )
    )  # fmt: skip


def went_back(jumps: DataFrame, *, inside: bool) -> DataFrame:
    """One anomaly per row that begins below the expected offset; ``size`` is by how many offsets."""
    back = jumps.filter(_is(inside=inside) & (F.col("first_offset") < F.col("expected")))
    return _found(back, F.col("expected") - F.col("first_offset"), [])


def skipped(jumps: DataFrame, positions: DataFrame, *, inside: bool) -> DataFrame:
    """One anomaly per row that skipped offsets with a value; ``size`` is how many of them."""
    ahead = jumps.filter(_is(inside=inside) & (F.col("first_offset") > F.col("expected")))
    passed = _with_passed(ahead, positions).filter(F.col("passed") > 0)
    return _found(passed, F.col("passed"), ["passed"])


def _is(*, inside: bool) -> Column:
    return F.col("inside") if inside else ~F.col("inside")


def _found(rows: DataFrame, size: Column, more: list[str]) -> DataFrame:
    ours = F.col("stream") >= 0
    return anomalies(
        rows,
        stream=F.when(ours, F.col("stream")),
        sequence=F.when(ours, F.col("first_sequence")),
        offset="first_offset",
        size=size,
        detail=["process", "session", "phase", "f", "expected", *more, *_BEFORE],
    )


def _with_passed(ahead: DataFrame, positions: DataFrame) -> DataFrame:
    """``ahead`` with the column ``passed``: how many offsets from ``expected`` to below ``first_offset`` were skipped.

    Only offsets with a value count. For ``read_committed`` readers, values that are not owed to them do not count
    (``verifier.not_owed``). The number is the difference of two running sums over the partition. This costs one sort,
    and not a comparison of each jump with each value.
    """
    columns = ahead.columns
    ends = [
        ahead.select("*", F.lit(sign).alias("sign"), F.col(end).alias("at"))
        for sign, end in ((-1, "expected"), (1, "first_offset"))
    ]
    held = positions.select("place", F.col("offset").alias("at"), F.col("values").alias("held"), "not_owed")
    # an end comes before a row that begins at the same offset, because that row is not below it
    below = (
        Window.partitionBy("place")
        .orderBy("at", F.col("held").isNotNull())
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )

    def sum_below(counts: Column) -> Column:
        shown = F.when(counts, F.col("held"))
        # the last row may reach beyond the end
        last = F.last(F.when(F.col("held").isNotNull(), F.col("at") + F.coalesce(shown, F.lit(0))), ignorenulls=True)
        over = F.greatest(F.coalesce(last.over(below), F.lit(0)) - F.col("at"), F.lit(0))
        return F.coalesce(F.sum(shown).over(below), F.lit(0)) - over

    committed = sum_below(~F.col("not_owed"))
    return (
        reduce(DataFrame.unionByName, ends)
        .unionByName(held, allowMissingColumns=True)
        .withColumn("below", F.when(F.col("is_isolated"), committed).otherwise(sum_below(F.lit(True))))
        .filter(F.col("sign").isNotNull())
        .groupBy(*columns)
        .agg(F.sum(F.col("sign") * F.col("below")).alias("passed"))
    )
