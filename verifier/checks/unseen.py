"""unseen: a value was acknowledged and is in the log, but a final reader that passed it did not receive it.

Definition. The value is acknowledged, is in the final leader's log no later than the sentinel, and at least one final
reader that read from offset 0 through the sentinel did not return it. (Jepsen takes the union of all reads, which hides
a reader that skips what another one gets.) A value that is not in the log is ``lost-write`` and not counted here.
Readers that did not reach the sentinel prove nothing: the run is then unknown. A reader with an ``isolation`` row
receives only committed records. So it need not return a value that is followed by its producer's ABORT marker, unless
the client knows that its transaction was committed.

    log: 0:(s1/0) 1:(s1/1) 2:sentinel      final reader: 0:(s1/0) 2:sentinel                  s1/1 is unseen
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per value; ``offset`` is its offset in the log."""
    # readers of committed records need not receive aborted values
    committed_only = F.when(F.col("not_owed"), F.col("isolated_mask")).otherwise(F.lit(0).cast("bigint"))
    expected = F.col("reader_mask").bitwiseAND(F.bitwise_not(committed_only))
    missed = (F.col("seen").bitwiseAND(expected)) != expected
    until_sentinel = F.least("values", F.col("sentinel_offset") - F.col("first_log") + 1)
    unseen = tables.ledger.filter(F.col("acked") & (F.col("copies") > 0) & (until_sentinel > 0) & missed)
    return anomalies(unseen, offset="first_log", count=until_sentinel, detail=["first_ack", "reads"])
