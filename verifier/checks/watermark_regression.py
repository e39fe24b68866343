"""watermark-regression: the high watermark that a reader was told went back under the same leader.

Definition. Two rows of one live session and partition follow each other, the second with a lower high watermark, and
the leader epoch cannot have changed between them. A leader's high watermark never goes back. But a new leader, cleanly
elected, begins with the watermark that it was told as a follower, and may for a moment serve a lower one than its
predecessor did. Clients are not told the epoch, so it is bounded from both sides:

- **not before**: a leader that says ``h`` has committed offset ``h - 1``, and the final log shows in which epoch that
  was written. The leader's own epoch is at least that.
- **not after**: the final epoch has no successor. Another epoch was certainly in office at a time if a value was sent
  after that time and is in the final log with this epoch, because a replica accepts nothing from a former leader once
  it is the leader itself. After the native client has fetched in an epoch, it accepts no answer from the leader of an
  earlier epoch. librdkafka and kafka-python may accept the watermark of such an answer if it is late. So for them, only
  a watermark above the offset at which the epoch begins is judged, since no former leader has committed that much.

If the two bounds leave a gap, the check finds nothing. It does not judge final readers, since nothing is sent after
them.

    epoch 3 from offset 50 on     polls of a session: high watermark 60, at 2 s: 55     s1/9 in epoch 3, sent at 3 s
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.checks.epochs import epochs, told_by_its_leader
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per row that goes back; ``offset`` is its high watermark, ``size`` by how much it is lower."""
    order = Window.partitionBy("place", "process", "session").orderBy("row")
    told = (
        tables.history.filter(
            F.col("f").isin("poll", "idle") & (F.col("high_watermark") >= 0) & (F.col("phase") == "load")
        )
        .select("place", "run", "process", "session", "row", "high_watermark", "complete_ns")
        .withColumns({"before": F.lag("high_watermark").over(order), "before_ns": F.lag("complete_ns").over(order)})
        .filter((F.col("high_watermark") < F.col("before")) & (F.col("complete_ns") >= 0))
    )
    within = (F.col("before") - 1 >= F.col("begins")) & (F.col("before") - 1 < F.col("ends"))
    known, by_its_leader = told_by_its_leader(tables, told)
    in_office = F.col("complete_ns") < F.col("until_ns")
    back = known.join(F.broadcast(epochs(tables)), "place").filter(within & in_office & by_its_leader)
    return anomalies(
        back,
        stream=None,
        sequence=None,
        offset="high_watermark",
        size=F.col("before") - F.col("high_watermark"),
        detail=["process", "session", "before", "leader_epoch", "before_ns", "complete_ns"],
    )
