"""Turns findings about the files beside the log into anomalies, for several checks.

Owns the form; does not own the rules for these files (``verifier.files``).
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from verifier.checks.common import anomalies
from verifier.tables import Tables


def findings(tables: Tables, check: str) -> DataFrame:
    """The anomalies of one check. ``count`` is the number of places with the same problem in a file.

    ``offset`` is the lowest of these places, or null.
    """
    return anomalies(
        tables.files.filter(F.col("check") == check),
        cause=F.col("cause"),
        stream=None,
        sequence=None,
        count="places",
        detail=["broker", "file", "problem"],
    )
