"""Tables that are files: read as they were written, and not planned where they have no rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from verifier.spark.written_tables import written

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


def test_what_needs_a_row_of_an_empty_table_is_not_planned(spark: Any, tmp_path: Path) -> None:
    """The rows come back, by one task of little evidence; without any, a query that needs one is empty before it
    runs."""
    from pyspark.sql import functions as F

    some = spark.range(10).select(F.col("id").alias("place"), F.col("id").cast("string").alias("name"))
    rows = written(some, tmp_path / "rows")
    assert sorted(tuple(row) for row in rows.collect()) == [(number, str(number)) for number in range(10)]
    assert rows.rdd.getNumPartitions() == 1
    none = written(some.filter("place > 10"), tmp_path / "none")
    assert none.schema == rows.schema and none.columns == some.columns
    joined = rows.join(none.select("place"), "place")
    assert joined.collect() == []
    assert joined._jdf.queryExecution().optimizedPlan().toString().startswith("LocalRelation <empty>")
