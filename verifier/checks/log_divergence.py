"""log-divergence: a replica has other batches than the final leader, or than another one before a batch of both.

Definition. Each replica is compared with the final leader, batch by batch, by base offset. The comparison begins at the
start of the leader's log, or at the start of the replica's log if that is higher because records were to be deleted. It
ends at the limit (the smaller of the final high watermark and the replica's own log end offset). An anomaly is a batch
that only the leader has (cause ``missing``) or only the replica has (cause ``extra``), or that both have with a
different CRC, leader epoch or size (cause ``different``; the CRC covers neither base offset nor epoch, so these are
compared separately). Batches that are corrupt on either side are ``log-corrupt``. Anything above the limit is legal: it
is an unreplicated tail.

If the replicas never settled, there is no limit. Then, if two logs have the same batch (by leader epoch, base offset,
CRC and size), they must also have the same batch right before it (cause ``before``), because a follower appends after a
batch only if its leader has that batch too. Legal: a replica that ends earlier, and a tail of an older epoch that is
not truncated yet, since no batch of another replica follows it.

    leader b1: [0..9 crc A] [10..19 crc B]      b2: [0..9 crc A] [10..19 crc C]         b2 diverges at offset 10
    b1: [0..9 epoch 1] [10..19 epoch 2]         b2: [0..9 epoch 0] [10..19 epoch 2]     not settled: before 10
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.tables import Tables

_COMPARED = ("crc", "leader_epoch", "next_offset", "size_bytes")


def find(tables: Tables) -> DataFrame:
    """One anomaly per replica and batch, or per batch of several; ``offset`` is the batch's base offset."""
    found = _from_leader(tables)
    return found if tables.unsettled is None else found.union(_before(tables.unsettled))


def _from_leader(tables: Tables) -> DataFrame:
    """The differences between each follower and the final leader, below the limit."""
    compared = (F.col("base_offset") < F.col("limit")) & (F.col("next_offset") > F.col("start"))
    batches = tables.segments.filter((F.col("kind") == "batch") & compared)
    # one row per base offset, even if a damaged log has it twice: the least and the most of each field are compared
    keyed = batches.groupBy("place", "broker", "is_leader", "base_offset").agg(
        *(F.min(name).alias(f"least_{name}") for name in _COMPARED),
        *(F.max(name).alias(f"most_{name}") for name in _COMPARED),
        F.max(F.col("problem").isNotNull()).alias("corrupt"),
    )
    followers = tables.replicas.filter(~F.col("is_leader")).select("place", "broker", "start", "limit")
    expected = (
        keyed.filter("is_leader")
        .drop("broker", "is_leader")
        .join(F.broadcast(followers), "place")
        .filter((F.col("base_offset") < F.col("limit")) & (F.col("most_next_offset") > F.col("start")))
        .select("place", "broker", "base_offset", *_renamed("leader"), F.lit(True).alias("on_leader"))
    )
    found = keyed.filter(~F.col("is_leader")).select(
        "place", "broker", "base_offset", *_renamed("replica"), F.lit(True).alias("on_replica")
    )
    pairs = expected.join(found, ["place", "broker", "base_offset"], "full_outer")
    same = F.lit(True)
    for name in _COMPARED:
        for end in ("least", "most"):
            same = same & (F.col(f"leader_{end}_{name}") == F.col(f"replica_{end}_{name}"))
    cause = (
        F.when(F.col("on_replica").isNull(), "missing")
        .when(F.col("on_leader").isNull(), "extra")
        .when(~F.col("leader_corrupt") & ~F.col("replica_corrupt") & ~same, "different")
    )
    detail = ["broker", *(f"{side}_most_{name}" for side in ("leader", "replica") for name in _COMPARED)]
    return anomalies(
        pairs.withColumn("cause", cause).filter(F.col("cause").isNotNull()),
        cause=F.col("cause"),
        stream=None,
        sequence=None,
        offset="base_offset",
        detail=[*detail],
    )


def _before(unsettled: DataFrame) -> DataFrame:
    """Each batch that several logs have, but after different batches. A hole before it proves nothing."""
    own = Window.partitionBy("place", "broker").orderBy("segment", "position")
    earlier = F.struct("leader_epoch", "base_offset", "crc", "size_bytes", "next_offset")
    follows = unsettled.withColumn("earlier", F.lag(earlier).over(own)).filter(
        F.col("earlier.next_offset") == F.col("base_offset")
    )
    found = (
        follows.groupBy("place", "leader_epoch", "base_offset", "crc", "size_bytes", "next_offset")
        .agg(
            F.min("earlier").alias("least"),
            F.max("earlier").alias("most"),
            F.min_by("broker", "earlier").alias("least_broker"),
            F.max_by("broker", "earlier").alias("most_broker"),
        )
        .filter(F.col("least") != F.col("most"))
    )
    detail = [
        "leader_epoch",
        *(
            column
            for end in ("least", "most")
            for column in (
                F.col(f"{end}_broker"),
                F.col(f"{end}.leader_epoch").alias(f"{end}_epoch"),
                F.col(f"{end}.base_offset").alias(f"{end}_base_offset"),
                F.col(f"{end}.crc").alias(f"{end}_crc"),
            )
        ),
    ]
    return anomalies(found, cause=F.lit("before"), stream=None, sequence=None, offset="base_offset", detail=[*detail])


def _renamed(side: str) -> list[F.Column]:
    names = [f"{end}_{name}" for name in _COMPARED for end in ("least", "most")]
    return [F.col(name).alias(f"{side}_{name}") for name in (*names, "corrupt")]
