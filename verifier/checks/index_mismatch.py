"""index-mismatch: an index of a segment does not match its batches.

Definition. In the ``.index`` and ``.timeindex`` of any segment of a replica: trailing bytes that are not a whole entry,
or more than 64 MB, which are not read (cause ``size``); an entry that points outside of the segment (cause
``outside``); an offset entry at whose byte no batch begins, or that does not have the last offset of an append that
begins there (cause ``batch``); a time entry whose batch does not have that newest timestamp, or is not the newest so
far (cause ``timestamp``); an entry that is not above the one before it (cause ``order``); a closed segment whose time
index does not end with its newest timestamp (cause ``newest``); after a clean stop, a missing file (cause ``missing``).

Legal: missing entries, since an index is sparse; zeros at its end, which is space that Kafka preallocates; and after a
kill, anything in the indexes of the last segment. They are written in groups and after the batches, a truncation cuts
them after the log, and the next start rebuilds them. Segments before the last were closed when they were rolled.

    .log: [0..9 at byte 0] [10..19 at byte 4400]        .index: 19 -> 4300        no batch begins at byte 4300
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from verifier.checks.beside import findings
from verifier.files.model import INDEX
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per entry or file; ``offset`` is the entry's, null for a file."""
    return findings(tables, INDEX)
