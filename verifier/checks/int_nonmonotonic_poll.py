"""int-nonmonotonic-poll: within one poll, the offsets of a partition go back or repeat.

Definition. As ``nonmonotonic-poll``, but between two records of one partition in the same poll.

    one poll of session 1: 5, 6, 5                                                          offset 5 again
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from verifier.checks.polls import went_back
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per place within a poll; ``size`` is by how many offsets it goes back."""
    return went_back(tables.jumps, inside=True)
