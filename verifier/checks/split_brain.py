"""split-brain: two different batches have the same leader epoch and base offset.

Definition. Anywhere in the files of a partition's replicas, even above the high watermark, and even if they never
settled: batches with the same leader epoch and the same base offset whose CRC, size or last offset differ. An epoch has
one leader, which writes each offset once, so an epoch and an offset identify one batch forever. Two batches mean that
two brokers believed they were the leader, or that one broker wrote twice. Corrupt batches are ``log-corrupt``. Legal:
the same offset in another epoch, which is what a truncated tail leaves on the replica that was isolated.

    b1: [0..9 epoch 1] [10..19 epoch 1, crc A]      b2: [0..9 epoch 1] [10..19 epoch 1, crc B]      two leaders at 10
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.tables import Tables

_COMPARED = ("crc", "size_bytes", "next_offset")


def find(tables: Tables) -> DataFrame:
    """One anomaly per epoch and offset; ``offset`` is the base offset, ``size`` how many batches claim it."""
    differs = F.lit(False)
    for name in _COMPARED:
        differs = differs | (F.col(f"least_{name}") != F.col(f"most_{name}"))
    found = (
        tables.with_unsettled(tables.segments.filter((F.col("kind") == "batch") & F.col("problem").isNull()))
        .groupBy("place", "leader_epoch", "base_offset")
        .agg(
            *(F.min(name).alias(f"least_{name}") for name in _COMPARED),
            *(F.max(name).alias(f"most_{name}") for name in _COMPARED),
            F.min_by("broker", "crc").alias("least_broker"),
            F.max_by("broker", "crc").alias("most_broker"),
            F.count_distinct(*_COMPARED).alias("claims"),
        )
        .filter(differs)
    )
    detail = [
        "leader_epoch",
        "least_broker",
        "most_broker",
        *(f"{end}_{name}" for name in _COMPARED for end in ("least", "most")),
    ]
    return anomalies(found, stream=None, sequence=None, offset="base_offset", size="claims", detail=[*detail])
