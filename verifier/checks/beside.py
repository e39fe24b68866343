"""Shared by the checks of files beside the log: findings as anomalies. The rules are those of ``verifier.files``."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.tables import Tables


def findings(tables: Tables, check: str) -> DataFrame:
    """One anomaly for each place in a file; ``offset`` is the lowest of those that are wrong alike, or null."""
    return anomalies(
        tables.files.filter(F.col("check") == check),
        cause=F.col("cause"),
        stream=None,
        sequence=None,
        count="places",
        detail=["broker", "file", "problem"],
    )
