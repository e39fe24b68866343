"""timestamp-outside-run: a batch's timestamp is outside the run.

Definition. On any replica, a batch whose base timestamp or newest timestamp (CreateTime or LogAppendTime, in ms) is
before the run began (cause ``before``) or after the end of its last phase (cause ``after``), by more than 60 s plus the
amount by which the wall clock was found to be behind or ahead: the processes of the run share one machine's clock,
which may be set during the run. If it moved by more than 60 s, nothing is judged; if a phase did not end, only
``before`` is. The load's clients give every record a timestamp, so -1 (none) is ``before``. Corrupt batches are
``log-corrupt``.

    run: 12:00:00 to 12:01:10        file: [0..9 at 12:00:05] [10..19 at 1970-01-01]        batch 10..19 is too early
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per replica and batch; ``offset`` is the batch's base offset."""
    base, newest = F.col("base_timestamp"), F.col("max_timestamp")
    cause = F.when(F.least(base, newest) < F.col("earliest_ms"), "before").when(
        F.greatest(base, newest) > F.col("latest_ms"), "after"
    )
    batches = tables.segments.filter((F.col("kind") == "batch") & F.col("problem").isNull())
    return anomalies(
        batches.withColumn("cause", cause).filter(F.col("cause").isNotNull()),
        cause=F.col("cause"),
        stream=None,
        sequence=None,
        offset="base_offset",
        detail=[
            "broker", "segment", "position", "base_timestamp", "max_timestamp", "earliest_ms", "latest_ms",
        ],
    )  # fmt: skip
