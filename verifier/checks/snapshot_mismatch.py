"""snapshot-mismatch: a producer snapshot differs from a replay of the log before it.

Definition. A ``.snapshot``, or the ``.producers`` that a gapless broker writes with it, holds each producer's newest
batch below the file's offset. For any replica: an unreadable snapshot, or one of more than 64 MB (cause
``unreadable``); an entry that differs from the replay in epoch, last sequence, offsets or timestamp (cause ``entry``);
a producer that is missing in the snapshot (cause ``lacks``) or that the log does not have (cause ``stranger``); an
offset beyond the end of the log (cause ``beyond``); after a clean stop, no snapshot at the end of the log (cause
``missing``). A broker that starts from a wrong snapshot mistakes duplicates for new batches.

Legal: producers whose batches the log no longer has, because its start has moved; producers that expired because
``producer.id.expiration.ms`` had passed by the end of the run; and missing snapshots at other offsets, since a full
disk or a truncation removes them and the log is authoritative.

    log: [0..9 p7 seq 0..9] [10..19 p7 seq 10..19]      20.snapshot: p7 last sequence 9      it forgot 10..19
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from verifier.checks.beside import findings
from verifier.files.model import SNAPSHOT
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per producer or file; ``offset`` is that of the snapshot."""
    return findings(tables, SNAPSHOT)
