"""epoch-regression: a batch has a lower leader epoch than one before it.

Definition. In the files of any replica, below the limit up to which it may be compared (anywhere, if its partition
never settled): a batch whose leader epoch is lower than that of an earlier batch. Every leader writes its own epoch,
and followers copy it, so epochs never decrease. Two leaders that wrote into one log, or a batch that was moved, are
found even if all replicas agree. Corrupt batches are ``log-corrupt``. Legal: an epoch without any batch, and anything
above the limit.

    file: [0..9 epoch 1] [10..19 epoch 3] [20..29 epoch 2]       epoch 2 was already over
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.tables import Tables

_LOG = ["place", "broker"]


def find(tables: Tables) -> DataFrame:
    """One anomaly per replica and batch; ``offset`` is the batch's base offset."""
    sound = tables.segments.filter((F.col("kind") == "batch") & F.col("problem").isNull())
    batches = tables.with_unsettled(sound.filter(F.col("base_offset") < F.col("limit"))).select(
        *_LOG, "leader_epoch", "base_offset", "next_offset", F.struct("segment", "position").alias("at")
    )
    # epochs are few, so it is cheap to find where each begins; only batches after the begin of a higher epoch follow
    higher = Window.partitionBy(*_LOG).orderBy(F.desc("leader_epoch")).rowsBetween(Window.unboundedPreceding, -1)
    late = (
        batches.groupBy(*_LOG, "leader_epoch")
        .agg(F.min("at").alias("first_at"), F.max("at").alias("last_at"))
        .withColumn("higher_at", F.min(F.struct("first_at", F.col("leader_epoch").alias("epoch"))).over(higher))
        .filter(F.col("last_at") > F.col("higher_at.first_at"))
        .select(*_LOG, "leader_epoch", "higher_at.first_at", F.col("higher_at.epoch").alias("after_epoch"))
    )
    found = batches.join(F.broadcast(late), [*_LOG, "leader_epoch"]).filter(F.col("at") > F.col("first_at"))
    detail = ["broker", F.col("at.segment").alias("segment"), F.col("at.position").alias("position"), "leader_epoch"]
    return anomalies(found, stream=None, sequence=None, offset="base_offset", detail=[*detail, "after_epoch"])
