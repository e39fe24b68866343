"""The shape in which every check returns what it found. Owns the columns of an anomaly; finds none itself."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

#: Columns of every check's result. ``cause`` is null or one of the causes in ``verifier.anomalies``; ``size`` counts
#: values (or offsets) where one anomaly covers several; ``detail`` is JSON, for people.
COLUMNS = ["place", "cause", "stream", "sequence", "offset", "size", "detail"]


def anomalies(
    frame: DataFrame,
    *,
    detail: list[str | Column],
    cause: Column | None = None,
    stream: str | Column | None = "stream",
    sequence: str | Column | None = "sequence",
    offset: str | Column | None = "offset",
    size: str | Column | None = None,
) -> DataFrame:
    """One anomaly per row of ``frame``, which has ``place``. None gives null (size: 1)."""
    return frame.select(
        "place",
        (F.lit(None) if cause is None else cause).cast("string").alias("cause"),
        _column(stream).alias("stream"),
        _column(sequence).alias("sequence"),
        _column(offset).alias("offset"),
        (F.lit(1).cast("bigint") if size is None else _column(size)).alias("size"),
        F.to_json(F.struct(*detail)).alias("detail"),
    )


def _column(value: str | Column | None) -> Column:
    if value is None:
        return F.lit(None).cast("bigint")
    return (F.col(value) if isinstance(value, str) else value).cast("bigint")
