"""The leader epochs of the final log, until when each was surely in office, and who may have told a watermark in one.

Used by ``watermark-regression`` and ``read-above-watermark``.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
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


def told_by_its_leader(tables: Tables, told: DataFrame) -> tuple[DataFrame, Column]:
    """``told`` with one more column, and the condition that no former leader can have told its ``high_watermark``.

    The condition needs the columns of ``epochs``. What a former leader has committed lies below the first offset of a
    later epoch, so a watermark above that is the later leader's. One at or below it may come from a former leader
    whose answer was delayed, by a pause or a slow link, unless the client drops such answers. Only the native one is
    known to: librdkafka takes the watermark from every answer before it drops those of a broker that the partition
    has left (``rd_kafka_fetch_reply_handle_partition``), and kafka-python compares nothing but positions.
    """
    drops_late = F.coalesce(F.col("drops_late_answers"), F.lit(False))
    known = told.join(F.broadcast(tables.drop_late_answers), ["run", "process"], "left")
    return known, drops_late | (F.col("high_watermark") > F.col("begins"))
