"""The form in which every check returns its findings. Owns the columns of an anomaly; finds none itself."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

#: The columns of every check's result. ``cause`` is null or one of the causes in ``verifier.anomalies``. A row can
#: represent several equal anomalies in succession: ``count`` is their number, and the other columns describe the first.
#: ``size`` is the number of values (or offsets) that one anomaly covers. ``detail`` is JSON, for people.
COLUMNS = ["place", "cause", "stream", "sequence", "offset", "count", "size", "detail"]


def anomalies(
    frame: DataFrame,
    *,
    detail: list[str | Column],
    cause: Column | None = None,
    stream: str | Column | None = "stream",
    sequence: str | Column | None = "sequence",
    offset: str | Column | None = "offset",
    count: str | Column | None = None,
    size: str | Column | None = None,
) -> DataFrame:
    """The anomalies in ``frame``, one row for each of its rows, in the form of ``COLUMNS``.

    ``frame`` needs the column ``place``. A parameter that is None gives null, or 1 for ``count`` and ``size``.
    """
    return frame.select(
        "place",
        (F.lit(None) if cause is None else cause).cast("string").alias("cause"),
        _column(stream).alias("stream"),
        _column(sequence).alias("sequence"),
        _column(offset).alias("offset"),
        _column(F.lit(1) if count is None else count).alias("count"),
        _column(F.lit(1) if size is None else size).alias("size"),
        F.to_json(F.struct(*detail)).alias("detail"),
    )


def _column(value: str | Column | None) -> Column:
    if value is None:
        return F.lit(None).cast("bigint")
    return (F.col(value) if isinstance(value, str) else value).cast("bigint")
