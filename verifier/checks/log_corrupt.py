"""log-corrupt: bytes on disk are not what was written.

Definition. In any replica, below the limit up to which it may be compared: (a) a batch whose CRC does not match, or
whose header or records contradict each other; cause ``batch``; (b) bytes that are no batch where one must be: a file
ends in them, or is cut off, before the limit; cause ``tail``; (c) in the final leader's log,
a sequenced value whose own checksums fail although the batch's CRC matches; cause ``value``. A torn tail above the
limit is what a killed broker leaves, and legal.

    file: [0..9] [10..19, crc stored 0x1234, computed 0x9876] [20..29]                  batch 10..19 is corrupt
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.tables import Tables

NAME = "log-corrupt"


def find(tables: Tables) -> DataFrame:
    """One anomaly per batch, tail or run of values; ``offset`` is where it begins."""
    kind, limit = F.col("kind"), F.col("limit")
    batch = (kind == "batch") & F.col("problem").isNotNull() & (F.col("base_offset") < limit)
    tail = (kind == "file") & F.col("problem").isNotNull() & (F.col("next_offset") < limit)
    value = (
        F.col("is_leader")
        & (kind == "run")
        & (F.col("value_problem") == "payload")
        & F.col("problem").isNull()
        & F.col("first_offset").between(F.col("start"), limit - 1)
    )
    broken = tables.segments.filter(batch | tail | value)

    def by_kind(of_batch: str, of_file: str, of_run: str) -> F.Column:
        names = {"batch": of_batch, "file": of_file, "run": of_run}
        return F.coalesce(*(F.when(kind == name, F.col(column)) for name, column in names.items()))

    first = by_kind("base_offset", "next_offset", "first_offset")
    size = F.when(kind == "batch", F.greatest(F.lit(1), F.col("next_offset") - F.col("base_offset"))).when(
        kind == "run", F.col("last_offset") - F.col("first_offset") + 1
    )
    return anomalies(
        broken,
        NAME,
        cause=F.when(kind == "batch", "batch").when(kind == "file", "tail").otherwise("value"),
        sequence="first_sequence",
        offset=first,
        size=F.coalesce(size, F.lit(1)),
        detail=["broker", "segment", "position", "size_bytes", "problem", "crc"],
    )
