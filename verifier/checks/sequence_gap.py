"""sequence-gap: a producer's batches do not follow each other.

Definition. In the final leader's log, from its start to the limit, among the batches of one producer id and epoch in
the order of their offsets, without control batches: a batch whose base sequence is not the successor of the last
sequence of the previous batch (0 follows 2147483647). The cause is ``skipped`` if it is ahead of the successor (modulo
2^31, in the shorter direction), and ``backwards`` if it is behind. The cause is ``first`` if an epoch's first batch
does not begin at 0. That is legal if the log start has moved, because earlier batches may have been deleted, and under
``gapless.unknown.producer=kafka``, which accepts any first sequence. Also legal: a new epoch that begins at 0 after
anything. Found even if all replicas agree.

    log: [p7 e0 seq 0..9] [p7 e0 seq 20..29]        sequences 10..19 of producer 7 were skipped
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.tables import Tables

SEQUENCES = 1 << 31
CONTROL = 0x20


def sequenced(tables: Tables) -> DataFrame:
    """The batches in the judged range of the final leaders' logs that have a sequence. Control batches have none."""
    return tables.segments.filter(
        F.col("is_leader")
        & (F.col("kind") == "batch")
        & (F.col("producer_id") >= 0)
        & (F.col("base_sequence") >= 0)
        & (F.col("attributes").bitwiseAND(CONTROL) == 0)
        & (F.col("next_offset") > F.col("start"))
        & (F.col("base_offset") < F.col("limit"))
    )


def find(tables: Tables) -> DataFrame:
    """One anomaly per batch; ``offset`` is its base offset."""
    told = F.col("base_sequence").cast("bigint")
    after = F.pmod(told + F.col("next_offset") - F.col("base_offset"), F.lit(SEQUENCES))
    of_one = Window.partitionBy("place", "producer_id", "producer_epoch").orderBy("base_offset", "segment", "position")
    ahead = F.pmod(told - F.col("expected"), F.lit(SEQUENCES))
    may_begin_anywhere = (F.col("start") > 0) | ~F.col("begins_at_zero")
    cause = (
        F.when(F.col("expected").isNull(), F.when((told != 0) & ~may_begin_anywhere, "first"))
        .when(ahead == 0, F.lit(None))
        .when(ahead < SEQUENCES // 2, "skipped")
        .otherwise("backwards")
    )
    found = (
        sequenced(tables)
        .withColumn("expected", F.lag(after).over(of_one))
        .withColumn("cause", cause)
        .filter(F.col("cause").isNotNull())
    )
    detail = ["broker", "segment", "position", "producer_id", "producer_epoch", "base_sequence", "expected"]
    return anomalies(found, cause=F.col("cause"), stream=None, sequence=None, offset="base_offset", detail=[*detail])
