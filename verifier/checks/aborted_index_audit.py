"""aborted-index-audit: an index of aborted transactions does not match the batches of its segment.

Definition. In the ``.txnindex`` of any segment of a replica: bytes that are not a whole number of entries of version 0;
an ABORT in the segment that ended a transaction and has no entry; an entry whose producer, first offset, last offset
(the marker's) or last stable offset is not what the batches say; an entry for a marker that the segment does not have;
an entry that does not come after the one before it. The last stable offset is where the first transaction begins that
is still open when the marker is written, or the offset after the marker (Kafka: ``TransactionIndex``, ``AbortedTxn``).
A reader of committed records skips the records that this index names. If an entry is missing, it receives aborted
records, and a wrong entry hides committed records.

Legal: no file if nothing was aborted; first and last stable offsets below the start of a log whose first records were
deleted, since the batches that would confirm them are gone; after a kill, anything in the index of the last segment,
which the next start rebuilds. A log in which compaction removed batches is not judged.

    log: 0:[p7 transactional] 3:[p8 transactional] 6:[ABORT p7]        .txnindex: p7 0..6, last stable offset 7, not 3
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from verifier.checks.beside import findings
from verifier.files.model import ABORTED_INDEX
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per wrong place; ``offset`` is the lowest marker with this problem, null if it is the whole file."""
    return findings(tables, ABORTED_INDEX)
