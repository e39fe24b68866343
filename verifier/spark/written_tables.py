"""Stores tables as Parquet files on this machine, to be written once and read by every query.

Owns how they are written and read; does not own the tables (``verifier.tables``). A query reads only the columns that
it needs from a file, and its plan ends there. A cache would hold all columns in the heap, and the plan of each query
would include the whole plan of the cached table. Spark does not plan the part of a query that needs rows of an empty
table.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from verifier.spark.settings import is_tiny


def written(frame: DataFrame, path: Path) -> DataFrame:
    """Computes the rows of ``frame`` now, writes them to ``path``, and returns the table in the files."""
    frame.write.option("compression", "snappy").parquet(str(path))
    return read(frame.sparkSession, path, frame.schema)


def read(spark: SparkSession, path: Path, schema: Any) -> DataFrame:
    """The rows of all files in this directory. With ``schema``, Spark needs no job to find the columns."""
    table = spark.read.schema(schema).parquet(str(path))
    if not any(pq.read_metadata(file).num_rows for file in path.glob("*.parquet")):
        # Spark would learn only at run time that the files are empty
        return table.limit(0)
    # for tiny evidence, one task reads all rows, so that grouping and sorting need no exchange between tasks
    return table.coalesce(1) if is_tiny(spark) else table
