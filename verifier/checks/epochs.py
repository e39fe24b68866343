"""Facts about the leader epochs in the final log, for ``watermark-regression`` and ``read-above-watermark``.

Owns the offsets of each epoch, until when its leader was certainly in office, and whether a former leader can have told
a client its high watermark. Finds no anomaly itself.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from verifier.checks.acks import standing
from verifier.tables import Tables

#: Later than any time, and above any offset.
ALWAYS = (1 << 63) - 1


def epochs(tables: Tables) -> DataFrame:
    """For each place and ``leader_epoch``: its offsets from ``begins`` to below ``ends``, and ``until_ns``.

    ``until_ns`` is the last time at which a value of this epoch was sent. The epoch was not over then, because a
    replica accepts nothing from a former leader once it is the leader itself. It is ``ALWAYS`` for the final epoch, and
    -1 for an epoch without such a value.
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
    """``told`` with another column, and the condition that no former leader can have told its ``high_watermark``.

    The condition needs the columns of ``epochs``. All records that a former leader committed are below the first offset
    of a later epoch, so only the later leader can have told a watermark above that offset. A watermark at or below it
    may come from a former leader whose answer was delayed, by a pause or a slow link, unless the client drops such
    answers. Only the native client does. librdkafka takes the watermark from every answer before it drops the answers
    of a broker that no longer leads the partition (``rd_kafka_fetch_reply_handle_partition``), and kafka-python only
    compares positions.
    """
    drops_late = F.coalesce(F.col("drops_late_answers"), F.lit(False))
    known = told.join(F.broadcast(tables.drop_late_answers), ["run", "process"], "left")
    return known, drops_late | (F.col("high_watermark") > F.col("begins"))
