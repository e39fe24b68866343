"""realtime-order: a value comes after one that was sent only after it had been acknowledged.

Definition. In one partition, a value was acknowledged before another one was sent, and yet its offset is the higher of
the two. Both are acknowledged with offsets and are in the final log there (``verifier.checks.acks``), whichever
producer sent them: a log is linearizable, even across producers. The anomaly is the value that was sent later and comes
first in the log.

Both times are from one machine's monotonic clock, and each errs on the safe side: a value counts as acknowledged when
its whole row was known to be, and as sent from the earliest intended time of its row on. Overlapping sends have no
order.

    send s1/4: acknowledged at 2 s, offset 9        send s2/0: from 3 s on, offset 8         s2/0 comes before s1/4
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from verifier.checks.acks import standing
from verifier.checks.common import anomalies
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per value; the detail names the highest offset that was acknowledged before it was sent."""
    rows = standing(tables)
    last = F.struct(
        F.col("last_offset").alias("offset"), "stream", F.col("last_sequence").alias("sequence"), "complete_ns"
    )
    acknowledged = rows.select("place", F.col("complete_ns").alias("at"), last.alias("acknowledged"))
    sent = rows.withColumn("at", F.col("invoke_ns"))
    # at equal times, the send comes first, because the acknowledgement is not before it
    before = (
        Window.partitionBy("place")
        .orderBy("at", F.col("acknowledged").isNotNull())
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    late = (
        sent.unionByName(acknowledged, allowMissingColumns=True)
        .withColumn("highest", F.max("acknowledged").over(before))
        .filter(F.col("acknowledged").isNull() & (F.col("first_offset") < F.col("highest.offset")))
    )
    return anomalies(
        late,
        sequence="first_sequence",
        offset="first_offset",
        count=F.least("last_offset", F.col("highest.offset") - 1) - F.col("first_offset") + 1,
        detail=[
            "invoke_ns",
            F.col("highest.offset").alias("behind_offset"),
            F.col("highest.stream").alias("behind_stream"),
            F.col("highest.sequence").alias("behind_sequence"),
            F.col("highest.complete_ns").alias("acknowledged_ns"),
        ],
    )
