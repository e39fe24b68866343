"""poll-skip: from one poll to the next, a reader skipped something.

Definition. Two polls of one session and partition follow each other, or a poll follows the assignment or seek of its
session, or a reader is assigned a partition again, beyond the position it had reached. Between the position reached and
the first offset of the poll, or of the new assignment, there is an offset with a value: in the final log, in anyone's
read, or in an acknowledgement. Legal: offsets without a value (control batches, compaction), and records that were
deleted on purpose. A session with an ``isolation`` row receives only committed records. So for such a session, values
that are followed by their producer's ABORT marker in the final log are legal too, unless their client knows that their
transaction was committed. This is Jepsen's external poll-skip, on offsets.

    log: 7:(s1/7) 8:(s1/8) 9:(s1/9)         polls of session 1: [..7], [9..]                    s1/8 was skipped
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from verifier.checks.polls import skipped
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per poll or assignment; ``size`` is how many offsets with a value it skipped."""
    return skipped(tables.jumps, tables.positions, inside=False)
