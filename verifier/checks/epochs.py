"""The leader epochs of the final log, and until when each was surely in office. Used by the checks of watermarks."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from verifier.checks.acks import standing
from verifier.tables import Tables

#: Later than any time, further than any offset.
ALWAYS = (1 << 63) - 1


def epochs(tables: Tables) -> DataFrame:
    """By place and ``leader_epoch``: from ``begins`` to below ``ends`` it stands, and was in office at ``until_ns``.

    A value that is in an epoch and was sent then shows that this epoch was not over: a replica takes no more from a
    former leader once it is one itself. The final epoch has no end. Without such a value ``until_ns`` is -1.
    """
    by_offset = Window.partitionBy("place").orderBy("begins")
    found = (
        tables.segments.filter(
            F.col("is_leader") & (F.col("kind") == "batch") & F.col("crc_ok") & (F.col("base_offset") < F.col("limit"))
        )
        .groupBy("place", "leader_epoch", "final_epoch")
        .agg(F.min("base_offset").alias("begins"))
        .withColumn("ends", F.coalesce(F.lead("begins").over(by_offset), F.lit(ALWAYS)))
    )
    written = F.col("first_offset").between(F.col("begins"), F.col("ends") - 1)
    sent = standing(tables).join(F.broadcast(found), "place").filter(written)
    latest = sent.groupBy("place", "leader_epoch").agg(F.max("invoke_ns").alias("sent_ns"))
    is_final = F.col("leader_epoch") >= F.col("final_epoch")
    until = F.when(is_final, ALWAYS).otherwise(F.coalesce("sent_ns", F.lit(-1)))
    return found.join(latest, ["place", "leader_epoch"], "left").withColumn("until_ns", until)
