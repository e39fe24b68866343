"""nonmonotonic-poll: a poll begins at or before the position that its session had already reached.

Definition. Two polls of one session and partition follow each other, or a poll follows the assignment or seek of its
session, and the first offset of the poll is below the position reached: something is delivered again, or was skipped
before. A new assignment is a new session and begins at its own offset. Jepsen's external nonmonotonic-poll, on offsets.

    polls of session 1: [5..7], [7..9]                                                      offset 7 again
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from verifier.checks.polls import went_back
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per poll; ``size`` is by how many offsets it goes back."""
    return went_back(tables.jumps, inside=False)
