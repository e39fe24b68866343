"""int-poll-skip: within one poll, a reader skipped something.

Definition. As ``poll-skip``, but between two records of one partition in the same poll.

    log: 7:(s1/7) 8:(s1/8) 9:(s1/9)         one poll of session 1: 7, 9                         s1/8 was skipped
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from verifier.checks.polls import skipped
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per place within a poll; ``size`` is how many offsets with a value were skipped."""
    return skipped(tables.jumps, tables.positions, inside=True)
