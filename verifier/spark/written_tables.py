"""Tables that are files on this machine: written once, as Parquet, and read by every question. Owns no table.

A question reads the columns that it needs, and plans no more than that; a cache holds all columns in the heap, and each
question's plan includes all that led to it. What needs a row of a table that has none is not planned at all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from verifier.spark.settings import is_tiny


def written(frame: DataFrame, path: Path) -> DataFrame:
    """The same rows, computed now."""
    frame.write.option("compression", "snappy").parquet(str(path))
    return read(frame.sparkSession, path, frame.schema)


def read(spark: SparkSession, path: Path, schema: Any) -> DataFrame:
    """The rows of all files in this directory. ``schema`` is told, or else Spark starts a job to look it up."""
    table = spark.read.schema(schema).parquet(str(path))
    if not any(pq.read_metadata(file).num_rows for file in path.glob("*.parquet")):
        # the files say so, but Spark asks them only when it runs
        return table.limit(0)
    # of little evidence, one task reads it all: what needs rows together need not collect them first
    return table.coalesce(1) if is_tiny(spark) else table
