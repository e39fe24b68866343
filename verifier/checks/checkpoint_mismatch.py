"""checkpoint-mismatch: a small text file of a replica or its broker contradicts the log.

Definition. For any replica: an unreadable checkpoint, or one of more than 64 MB (cause ``unreadable``); a
``leader-epoch-checkpoint`` whose epochs or starts do not ascend, begin beyond the end of the log, or differ from those
of the batches from the log start on (cause ``epochs``). After a clean stop also: a missing checkpoint (cause
``missing``); a ``recovery-point-offset-checkpoint`` that is not at the end of the log, up to which the log was synced
(cause ``recovery-point``); a ``replication-offset-checkpoint`` beyond the end of the log or, on the final leader, below
the high watermark that the final phase saw (cause ``high-watermark``); a ``log-start-offset-checkpoint`` beyond the end
of the log or, on the final leader, one that together with the name of the first segment does not give the log start
that the final phase saw (cause ``log-start``); and, if the run recorded that the broker's process exited with status 0,
no ``.kafka_cleanshutdown`` (cause ``marker``). A stop is clean if there is that file or that status. If a broker's file
is unreadable, it counts once for each of its replicas.

Legal: epochs without batches, including one that begins at the end of the log; a follower's high watermark below its
leader's; no line for a log that begins with its first segment. After a kill: offset checkpoints that lag behind, or
that are above the end of a log that had just been truncated; epochs that begin above the end of the log, or after the
beginning of the first segment.

    leader-epoch-checkpoint: 0 0, 1 20        file: [0..9 epoch 0] [10..19 epoch 1]        offset 10 is said to be of 0
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from verifier.checks.beside import findings
from verifier.files.model import CHECKPOINT
from verifier.tables import Tables


def find(tables: Tables) -> DataFrame:
    """One anomaly per batch or line; ``offset`` is where an epoch is wrong, else null."""
    return findings(tables, CHECKPOINT)
