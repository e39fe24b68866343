"""nonmonotonic-send: clients were told positions that contradict the order in which a producer sent.

Definition. A stream is written in the order of its sequences, by one producer at a time (``verifier.checks.order``). A
value's position is the lowest offset at which it was acknowledged or read. An anomaly is a value whose position is
after that of a value that the same producer sent later. It is also an acknowledged value whose position is after that
of a value that any producer of the stream sent later, since its client had the acknowledgement before it continued
under another producer id. A value that is no longer in the log has no position (it is ``lost-write``, and its offset
may have been reused). Jepsen's external nonmonotonic-send; values out of order in the log itself are ``log-reorder``.

    sends  s1/4 -> ok, offset 9      s1/5 -> ok, offset 8                            s1/4 comes after s1/5
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.checks.order import late_values
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per value that comes too late; the detail names one that overtook it."""
    placed = (
        tables.ledger.filter(F.col("copies") > 0)
        .withColumn("at", F.least("first_ack", "first_read"))
        .filter(F.col("at").isNotNull())
    )
    return anomalies(
        late_values(placed, "at", across_ids=True),
        offset="at",
        count="values",
        detail=["after_sequence", "after_offset"],
    )
