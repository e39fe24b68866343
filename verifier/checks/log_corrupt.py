"""log-corrupt: bytes on disk are not those that were written.

Definition. In any replica, below the limit up to which it may be compared: (a) a batch whose CRC does not match, whose
header contradicts itself, or whose records contradict the header; cause ``batch`` (records are read only on the final
leader: another replica's batch with a correct CRC either equals the leader's or is ``log-divergence``); (b) bytes that
are not a batch where one must be: before the limit, a file ends in such bytes or is truncated; cause ``tail``; (c) in
the final leader's log, a sequenced value whose own checksums fail although the batch's CRC matches; cause ``value``;
(d) a batch at an offset below the one in its file's name, since a lookup of its offset opens the previous file; cause
``segment``. A torn tail above the limit is legal, because a killed broker leaves one. So is a file whose first batch is
above the offset in its name.

    file: [0..9] [10..19, crc stored 0x1234, computed 0x9876] [20..29]                  batch 10..19 is corrupt
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per batch, tail or value; ``offset`` is its first offset."""
    return _files(tables).union(_values(tables))


def _files(tables: Tables) -> DataFrame:
    is_batch, limit = F.col("kind") == "batch", F.col("limit")
    batch = is_batch & (F.col("base_offset") < limit)
    misplaced = batch & (F.col("base_offset") < F.col("segment"))
    tail = (F.col("kind") == "file") & (F.col("next_offset") < limit)
    length = F.greatest(F.lit(1), F.col("next_offset") - F.col("base_offset"))
    return anomalies(
        tables.segments.filter(misplaced | (F.col("problem").isNotNull() & (batch | tail))),
        cause=F.when(~is_batch, "tail").when(F.col("problem").isNull(), "segment").otherwise("batch"),
        stream=None,
        sequence=None,
        offset=F.when(is_batch, F.col("base_offset")).otherwise(F.col("next_offset")),
        size=F.when(is_batch, length).otherwise(1),
        detail=["broker", "segment", "position", "size_bytes", "problem", "crc"],
    )


def _values(tables: Tables) -> DataFrame:
    broken = tables.log.filter((F.col("value_problem") == "payload") & F.col("problem").isNull())
    return anomalies(
        broken,
        cause=F.lit("value"),
        sequence="first_sequence",
        offset="first_offset",
        count=F.col("last_offset") - F.col("first_offset") + 1,
        detail=["broker", "segment", "position"],
    )
