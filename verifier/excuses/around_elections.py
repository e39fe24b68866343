"""Which sequences of a stream are in the log before an election, and which in its epoch or a later one.

A value with a higher sequence than the first one in an epoch was sent after its producer had found the new leader, so
that election did not cut it off (``verifier.excuses.elections``). A resent batch may have the lowest sequence of an
epoch without having been sent first. Judges nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from verifier.claims import well_formed
from verifier.excuses.event_rows import Grounds, in_bouts
from verifier.excuses.expectation import RETRY, Expectation
from verifier.tables import Tables


def standing(tables: Tables, grounds: Mapping[str, Grounds], epochs: DataFrame) -> DataFrame:
    """By election and stream: the last sequence in the log before its epoch, and the first in that epoch or later.

    ``first_in`` is the latter. ``first_in_turn`` ignores batches that may have been resent behind later sequences. It
    counts for values handed over until ``again_ns``, when the last of the ignored batches was resent.
    """
    log = tables.log.filter(F.col("stream").isNotNull())
    last = F.col("first_sequence") + F.col("last_offset") - F.col("first_offset")
    same = [F.col(f"log.{name}") == F.col(f"again.{name}") for name in ("place", "stream")]
    within = F.col("log.first_sequence").between(F.col("again.first"), F.col("again.last"))
    rows = (
        log.select("place", "stream", "leader_epoch", "first_sequence", last.alias("last_sequence"))
        .alias("log")
        .join(F.broadcast(_out_of_turn(tables, grounds)).alias("again"), [*same, within], "left")
        .select("log.*", F.col("again.last").alias("again_last"), F.col("again.again_ns").alias("again_ns"))
    )
    behind = F.coalesce(F.col("again_last") + 1, F.col("first_sequence"))
    in_turn = F.when(behind <= F.col("last_sequence"), behind)
    later, key = F.col("leader_epoch") >= F.col("epoch"), ["place", "stream", "epoch"]
    known = (
        rows.groupBy("place", "stream", "leader_epoch")
        .agg(
            F.min("first_sequence").alias("lowest"),
            F.min(in_turn).alias("lowest_in_turn"),
            F.max("last_sequence").alias("highest"),
        )
        .join(F.broadcast(epochs.select("place", "epoch")), "place")
        .groupBy(*key)
        .agg(
            F.min(F.when(later, F.col("lowest"))).alias("first_in"),
            F.min(F.when(later, F.col("lowest_in_turn"))).alias("first_in_turn"),
            F.max(F.when(~later, F.col("highest"))).alias("last_before"),
        )
    )
    before_it = F.coalesce(F.col("first_sequence") < F.col("first_in_turn"), F.lit(True))
    again = (
        rows.filter(F.col("again_ns").isNotNull())
        .join(known, ["place", "stream"])
        .filter(later & before_it)
        .groupBy(*key)
        .agg(F.max("again_ns").alias("again_ns"))
    )
    return known.join(again, key, "left")


def _out_of_turn(tables: Tables, grounds: Mapping[str, Grounds]) -> DataFrame:
    """Stretches of sequences that may have arrived behind later ones; adjacent retries of a stream are one stretch.

    Suppose two batches are in flight, and a leader that has learned of its successor refuses the first one, after it
    took the second. The first is resent and stored in the next epoch; the second, with higher sequences, is cut off.
    """
    places = [
        number
        for number, place in enumerate(tables.places)
        if Expectation(grounds[place.run].settings).can_allow("nonmonotonic-send", RETRY)
    ]
    retries = tables.history.filter(
        F.col("place").isin(places) & (F.col("f") == "retry") & (F.col("stream") >= 0) & well_formed()
    )
    # retries that touch each other are one stretch
    together = in_bouts(retries, F.col("first_sequence"), F.col("last_sequence") + 1)
    return together.groupBy("place", "stream", "bout").agg(
        F.min("first_sequence").alias("first"),
        F.max("last_sequence").alias("last"),
        F.max("complete_ns").alias("again_ns"),
    )
