"""How readers moved from one delivery to the next. Used by the four checks of polls; finds nothing itself.

Rows are compared, never values: a row covers consecutive offsets, and the next row of the same session and partition
must begin right after it. A session begins at the offset of its ``assign``, and continues at that of a ``seek``. A
session without either is judged from its second row on. A session that follows another one of its process may begin
earlier, but never beyond the position that the process had reached: it would skip what is in between. Rows with the
same ``op`` were returned by one poll.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from verifier.checks.common import anomalies

#: What tells one reader's session apart from others.
_WHOSE = ("place", "process", "session")

#: By what an unclean election that moved the reader is known.
_BEFORE = ("before_ns", "complete_ns", "had_stream", "had_sequence")


def jumps_of(history: DataFrame) -> DataFrame:
    """Each delivered row that does not begin right after what its session had reached, in rows of the history.

    And each assignment further on than what the process had reached, by whichever session.

    ``expected`` is the offset that was to come, ``inside`` whether the one before came by the same poll. ``before_ns``
    is when its reader had come there, ``had_stream`` and ``had_sequence`` the value that it was handed last.
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
    """One anomaly per row that begins at or before what its session had reached; ``size`` is how far it goes back."""
    back = jumps.filter(_is(inside=inside) & (F.col("first_offset") < F.col("expected")))
    return _found(back, F.col("expected") - F.col("first_offset"), [])


def skipped(jumps: DataFrame, positions: DataFrame, *, inside: bool) -> DataFrame:
    """One anomaly per row that skipped offsets that hold something; ``size`` is how many."""
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
    """``ahead`` with ``passed``: how many offsets from ``expected`` up to ``first_offset`` hold something for its
    reader.

    A value that is not owed to readers of committed records holds nothing for these (``verifier.not_owed``). Counted as
    the difference of two running sums over the partition, so that many jumps over many holes cost a sort and not a
    comparison of each with each.
    """
    columns = ahead.columns
    ends = [
        ahead.select("*", F.lit(sign).alias("sign"), F.col(end).alias("at"))
        for sign, end in ((-1, "expected"), (1, "first_offset"))
    ]
    held = positions.select("place", F.col("offset").alias("at"), F.col("values").alias("held"), "not_owed")
    # an end comes before what begins at it: that is not below it
    below = (
        Window.partitionBy("place")
        .orderBy("at", F.col("held").isNotNull())
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )

    def sum_below(counts: Column) -> Column:
        shown = F.when(counts, F.col("held"))
        # what began last may reach beyond
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
