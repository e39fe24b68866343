"""log-divergence: a replica has other batches than the final leader.

Definition. From the start (that of the leader's log, or a later one of the replica's own up to which records were to be
deleted) to the limit (the smaller of the final high watermark and the replica's own log end offset), batch by batch, by
base offset: a batch that the leader has and the replica does not have (cause ``missing``), one that the replica has and
the leader does not have (cause ``extra``), or one that both have with a different CRC, leader epoch or size (cause
``different``; the CRC covers neither base offset nor epoch, so these are compared separately). Batches that are corrupt
on either side are ``log-corrupt``. Anything above the limit is legal: it is an unreplicated tail.

    leader b1: [0..9 crc A] [10..19 crc B]      b2: [0..9 crc A] [10..19 crc C]         b2 diverges at offset 10
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.tables import Tables

_COMPARED = ("crc", "leader_epoch", "next_offset", "size_bytes")


def find(tables: Tables) -> DataFrame:
    """One anomaly per replica and batch; ``offset`` is the batch's base offset."""
    compared = (F.col("base_offset") < F.col("limit")) & (F.col("next_offset") > F.col("start"))
    batches = tables.segments.filter((F.col("kind") == "batch") & compared)
    # one row per base offset, also when a damaged log holds it twice: both ends are compared
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


def _renamed(side: str) -> list[F.Column]:
    names = [f"{end}_{name}" for name in _COMPARED for end in ("least", "most")]
    return [F.col(name).alias(f"{side}_{name}") for name in (*names, "corrupt")]
