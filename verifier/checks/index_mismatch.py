"""index-mismatch: an index of a segment does not fit its batches.

Definition. In the ``.index`` and ``.timeindex`` of any segment of a replica: bytes at the end that do not make a whole
entry (cause ``size``); an entry that points outside of the segment (cause ``outside``); an offset entry at whose byte
no batch begins, or that does not name the last offset of an append that begins there (cause ``batch``); a time entry
whose batch does not have that newest timestamp, or is not the newest so far (cause ``timestamp``); an entry that is not
above the one before it (cause ``order``); a closed segment whose time index does not end with its newest timestamp
(cause ``newest``); after a clean stop, no such file (cause ``missing``).

Legal: any entries that are not there, for an index is sparse; zeros at its end, the room that Kafka keeps; and after a
kill whatever the last segment's indexes say. They are written in groups and after the batches, a truncation cuts them
after the log, and the next start makes them again. Segments before the last were closed when they were rolled.

    .log: [0..9 at byte 0] [10..19 at byte 4400]        .index: 19 -> 4300        no batch begins at byte 4300
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from verifier.checks.beside import findings
from verifier.files.model import INDEX
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per entry or file; ``offset`` is what the entry says, null for a file."""
    return findings(tables, INDEX)
