"""log-duplicate: the log has one value at two offsets.

Definition. Between log start and final high watermark, the final leader's log has the value at two or more offsets. The
cause says who appended it twice: ``verifier.checks.copies``.

    log: 7:(s1/7, producer 1000, base sequence 7)  9:(s1/7, producer 1000, base sequence 7)    cause: broker
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.checks.copies import with_cause
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per value; ``offset`` is its first copy, ``size`` the number of copies."""
    twice = tables.ledger.filter(F.col("first_log") < F.col("last_log"))
    return anomalies(
        with_cause(tables, twice),
        cause=F.col("cause"),
        offset="first_log",
        count="values",
        size="copies",
        detail=["first_log", "last_log", "copies"],
    )
