"""sequence-duplicate: one sequence of a producer is at two offsets.

Definition. In the final leader's log, from its start to the limit: the same producer id, epoch and base sequence at
more than one offset. A broker knows which sequences a producer has appended, and acknowledges a repeated batch without
appending it. So this is wrong even if all replicas agree, whatever the values are. Legal: the same sequence under
another epoch or id (the client caused that), the same batch twice at one offset in a file (``log-reorder``), and a
sequence that recurs after 2147483648 others.

    log: 0:[p7 e0 seq 0..9] 10:[p7 e0 seq 10..19] 20:[p7 e0 seq 0..9]        sequence 0 is at 0 and at 20
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.checks.sequence_gap import SEQUENCES, sequenced
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per sequence; ``offset`` is its lowest offset, ``size`` the number of its offsets."""
    key = ["producer_id", "producer_epoch", "base_sequence"]
    found = (
        sequenced(tables)
        .groupBy("place", *key)
        .agg(
            F.min("base_offset").alias("first_offset"),
            F.max("base_offset").alias("last_offset"),
            F.count_distinct("base_offset").alias("copies"),
        )
        .filter((F.col("copies") > 1) & (F.col("last_offset") - F.col("first_offset") < SEQUENCES))
    )
    return anomalies(
        found,
        stream=None,
        sequence=None,
        offset="first_offset",
        size="copies",
        detail=[*key, "first_offset", "last_offset", "copies"],
    )
