"""inconsistent-offsets: two sources disagree about the value at an offset.

Definition. Acknowledgements (with an offset), reads and the final leader's log all say which value is at which
(partition, offset). An anomaly is an offset

- with two or more different values across all of these (Jepsen's definition), or
- at which a value was read, while the final log extends further but has nothing there (read, then lost), or
- at which a value was acknowledged, while the log has nothing there but has that value elsewhere.

Below the offset up to which records were to be deleted (``verifier.deletions``), only the first of them is judged: two
clients cannot both have been told the truth about one offset, no matter what the log has deleted since. It is not
judged if the settings allow an election to truncate acknowledged records (acks=0, acks=1, unclean elections), since the
epochs that were there have been deleted as well.

A value that was acknowledged and is nowhere in the log is ``lost-write``. It counts here only if it was read, or if
another value has its offset. The cause is ``read`` if a read is involved (whatever acks is set to, a reader must never
receive a value that may still vanish), else ``acknowledged``. A place with damaged bytes is ``log-corrupt``.

    send  s1/7 -> ok, offset 7            log: 7:(s2/3)            offset 7 is claimed by s1/7 and held by s2/3
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.claims import cut, pieces
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per offset. The example's context has the values that are claimed for it, and by whom."""
    suspects = _claimed_twice(tables).union(_acknowledged_elsewhere(tables)).union(_claimed_twice_and_deleted(tables))
    suspects = cut(suspects, ["place"], "offset")
    offsets = pieces(suspects, ["place"], "offset", F.max("by_reader").alias("by_reader"))
    cause = F.when(F.col("by_reader"), "read").otherwise("acknowledged")
    return anomalies(offsets, cause=cause, stream=None, sequence=None, count="values", detail=["by_reader"])


def _claimed_twice(tables: Tables) -> DataFrame:
    """Offsets with two values, and offsets that were read but at which the log has nothing."""
    # reads agree with the log if it has one value there, and all reads returned that value. Unreadable bytes never
    # agree, but matter only if something else is wrong with the offset
    reads_agree = F.lit(True)
    for name in ("stream", "sequence"):
        one = F.col(f"lowest_log_{name}")
        for other in (f"highest_log_{name}", f"lowest_read_{name}", f"highest_read_{name}"):
            reads_agree = reads_agree & (F.col(other) == one)
    by_reader = F.col("read") & ~F.coalesce(reads_agree, F.lit(False))
    return tables.positions.filter(_two_values() | (F.col("read") & ~F.col("logged"))).select(
        "place", "offset", "values", by_reader.alias("by_reader")
    )


def _claimed_twice_and_deleted(tables: Tables) -> DataFrame:
    """Deleted offsets with two values. No log shows which claim is right, but readers must agree with each other."""
    by_reader = F.coalesce(_two_values("read_"), F.lit(False))
    return tables.deleted.filter(_two_values()).select("place", "offset", "values", by_reader.alias("by_reader"))


def _two_values(who: str = "") -> Column:
    """Whether the claims for an offset have two values. ``who`` is the prefix of the columns for one kind of claim."""
    return (F.col(f"lowest_{who}stream") != F.col(f"highest_{who}stream")) | (
        F.col(f"lowest_{who}sequence") != F.col(f"highest_{who}sequence")
    )


def _acknowledged_elsewhere(tables: Tables) -> DataFrame:
    """Acknowledged offsets that do not have their value, although the log has it elsewhere."""
    too_low = F.when(F.col("first_ack") < F.col("first_log"), F.col("first_ack"))
    too_high = F.when(F.col("last_ack") > F.col("last_log"), F.col("last_ack"))
    return (
        tables.ledger.filter((F.col("copies") > 0) & (too_low.isNotNull() | too_high.isNotNull()))
        .select(
            "place", F.explode(F.array(too_low, too_high)).alias("offset"), "values", F.lit(False).alias("by_reader")
        )
        .filter(F.col("offset").isNotNull())
    )
