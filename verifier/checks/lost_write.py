"""lost-write: a value was acknowledged and is not in the log.

Definition. The value was acknowledged, and the final leader's log has no copy of it between its start and its final
high watermark, not even at the tail. Jepsen proves a loss by reads (a later value was read, this one never was). Here,
the log decides, and the example shows both. A record that was acknowledged below the offset up to which records were to
be deleted (``verifier.deletions``) is not lost. If anything was deleted, an acknowledgement without an offset is not
judged. If a log begins above all requested deletions, the records in between are lost.

    send  s1/7 -> ok, offset 7        log of the final leader: ... 6:(s1/6) 7:(s1/8) ...        s1/7 is lost
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per lost value; ``offset`` is the one that was acknowledged, if any."""
    decidable = F.col("first_ack").isNotNull() | (F.col("from_offset") == 0)
    lost = tables.ledger.filter(F.col("acked") & (F.col("copies") == 0) & decidable)
    detail: list[str | F.Column] = ["first_ack", "reads", "first_read", "high_watermark"]
    return anomalies(lost, offset="first_ack", count="values", detail=detail)
