"""read-before-send: a reader received a value before it was sent.

Definition. A poll that returned the value ended before the earliest time at which the value can have been sent. Both
times are from one machine's monotonic clock. A row of sends has the earliest intended time of its values, and no value
is sent before it is due. So the earliest possible time of the send is compared with the latest possible time of the
poll, and anything that the clocks cannot distinguish is legal. A send that certainly did not happen has no time
(``phantom``).

    poll: returned at 2 s, brought s1/4             send s1/4: intended for 3 s
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.claims import cut, pieces, well_formed
from verifier.tables import Tables

_KEY = ["place", "stream"]


def find(tables: Tables) -> DataFrame:
    """One anomaly per value; ``offset`` is that of the value in the earliest poll."""
    rows = tables.history.filter(
        well_formed() & F.col("f").isin("send", "sentinel", "poll") & (F.col("type") != "fail") & (F.col("stream") >= 0)
    )
    is_read = F.col("f") == "poll"
    shift = F.col("first_offset") - F.col("first_sequence")
    times = rows.filter(F.when(is_read, F.col("complete_ns")).otherwise(F.col("invoke_ns")) >= 0).select(
        *_KEY,
        F.col("first_sequence").alias("sequence"),
        (F.col("last_sequence") - F.col("first_sequence") + 1).alias("values"),
        F.when(is_read, F.struct(F.col("complete_ns").alias("ns"), shift.alias("shift"))).alias("read"),
        F.when(~is_read, F.col("invoke_ns")).alias("sent_ns"),
    )
    suspects = _suspects(times)
    involved = times.filter(F.col("sent_ns").isNotNull()).join(suspects.select(*_KEY).distinct(), _KEY, "left_semi")
    told = pieces(
        cut(suspects.unionByName(involved), _KEY, "sequence"),
        _KEY,
        "sequence",
        F.min("read").alias("read"),
        F.min("sent_ns").alias("sent_ns"),
    )
    early = told.filter(F.col("read.ns") < F.col("sent_ns"))
    return anomalies(
        early,
        offset=F.col("sequence") + F.col("read.shift"),
        count="values",
        detail=[F.col("read.ns").alias("read_ns"), "sent_ns"],
    )


def _suspects(times: DataFrame) -> DataFrame:
    """The reads that returned before a send of the same or lower sequences of their stream.

    A stream is sent in the order of its sequences. So in a correct run, this is empty, and the exact comparison that
    follows costs nothing.
    """
    is_read = F.col("read").isNotNull()
    reaches = F.when(is_read, F.col("sequence") + F.col("values") - 1).otherwise(F.col("sequence"))
    # a send that begins at the last sequence of a read counts for this read
    upto = Window.partitionBy(*_KEY).orderBy("reaches", is_read)
    return (
        times.withColumn("reaches", reaches)
        .withColumn("latest", F.max("sent_ns").over(upto.rowsBetween(Window.unboundedPreceding, Window.currentRow)))
        .filter(is_read & (F.col("read.ns") < F.col("latest")))
        .drop("reaches", "latest")
    )
