"""read-above-watermark: a reader received a record that was not committed yet.

Definition. A poll returned a record at or above the high watermark that its reader knew when the poll returned, and the
leader cannot have changed meanwhile. A leader returns no record at or above its high watermark, includes the watermark
in every answer, and never lowers it. So all records that a reader received are below the watermark that it was told
last. Another leader may tell a lower one: the leader epoch is bounded as in ``watermark-regression``, also for clients
that take the watermark of a former leader's late answer, and an unclean election excuses it. A poll whose client knew
no watermark is not judged.

This check assumes gapless's own brokers, whose answer never has a lower watermark than the one that bounded the read.
Apache Kafka determines the watermark of its answer before it reads the log, so the answer may return records that were
committed in between and are not below that watermark yet. Runs with Apache Kafka would need another rule.

    poll: offsets 50..59, high watermark 55         offsets 55..59 were not committed
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.checks.epochs import epochs, told_by_its_leader
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per row; ``offset`` is the first that was not committed, ``size`` how many follow in the row."""
    above = F.greatest(F.col("first_offset"), F.col("high_watermark"))
    told = tables.history.filter(
        (F.col("f") == "poll")
        & (F.col("type") == "ok")
        & (F.col("first_offset") >= 0)
        & (F.col("high_watermark") >= 0)
        & (F.col("last_offset") >= F.col("high_watermark"))
        & (F.col("complete_ns") >= 0)
    ).select(
        "place",
        "run",
        "process",
        "session",
        "phase",
        "high_watermark",
        "last_offset",
        "complete_ns",
        above.alias("above"),
    )
    known, by_its_leader = told_by_its_leader(tables, told)
    stands = (F.col("last_offset") >= F.col("begins")) & (F.col("last_offset") < F.col("ends"))
    in_office = F.col("complete_ns") < F.col("until_ns")
    early = known.join(F.broadcast(epochs(tables)), "place").filter(stands & in_office & by_its_leader)
    return anomalies(
        early,
        stream=None,
        sequence=None,
        offset="above",
        size=F.col("last_offset") - F.col("above") + 1,
        detail=[
            "process", "session", "phase", "high_watermark", "last_offset", "leader_epoch", "complete_ns",
            F.col("complete_ns").alias("before_ns"), (F.col("last_offset") + 1).alias("before"),
        ],
    )  # fmt: skip
