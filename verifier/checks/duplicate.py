"""duplicate: readers received one value at two offsets.

Definition. Over all reads of both phases, the value was delivered at two or more different offsets of its partition.
(If the same offset is delivered twice, the reader repeated it, not the log.) The cause says who appended it twice:
``verifier.checks.copies``. Copies in the log itself are ``log-duplicate``.

    reads: 7:(s1/7) 8:(s1/8) 9:(s1/7)                                                   s1/7 is at 7 and at 9
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.checks.copies import with_cause
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per value; ``offset`` is the first at which it was read."""
    twice = tables.ledger.filter(F.col("first_read") < F.col("last_read"))
    return anomalies(
        with_cause(tables, twice),
        cause=F.col("cause"),
        offset="first_read",
        count="values",
        detail=["first_read", "last_read", "first_ack", "last_ack"],
    )
