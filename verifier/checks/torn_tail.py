"""torn-tail: after a clean stop, a file ends in bytes that are not a batch.

Definition. On any replica whose broker stopped cleanly (as defined by ``checkpoint-mismatch``), bytes after the last
whole batch of a segment, at any offset. Below the limit, they are ``log-corrupt`` as well. Legal: after a kill, half a
batch after everything that is committed; the next start truncates it.

    .kafka_cleanshutdown is there        file: [0..9] [10..19] and the first 70 bytes of a batch
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from verifier.checks.beside import findings
from verifier.files.model import TAIL
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per file; ``offset`` is the next offset after its last batch."""
    return findings(tables, TAIL)
