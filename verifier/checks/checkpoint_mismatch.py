"""checkpoint-mismatch: a small text file of a replica or its broker contradicts the log.

Definition. Of any replica: a checkpoint that cannot be read (cause ``unreadable``); ``leader-epoch-checkpoint`` with
epochs or starts that do not ascend, that begin beyond the log's end, or that are not those of the batches from the
log's start on (cause ``epochs``). After a clean stop also: a checkpoint that is not there (cause ``missing``);
``recovery-point-offset-checkpoint`` other than the log's end, which was synced to that point (cause
``recovery-point``); ``replication-offset-checkpoint`` beyond the log's end or, on the final leader, below the high
watermark that the final phase saw (cause ``high-watermark``); ``log-start-offset-checkpoint`` beyond the log's end or,
on the final leader, with the first segment's name not the log start that the final phase saw (cause ``log-start``);
and, where the run noted that the broker's process ended with status 0, no ``.kafka_cleanshutdown`` (cause ``marker``).
That file, or that status, is what makes a stop clean. A broker's file that cannot be read counts once for each of its
replicas.

Legal: epochs that no batch is of, also one that begins where the log ends; a follower's high watermark below its
leader's; no line for a log that begins with its first segment. After a kill: checkpoints of offsets that lag behind, or
that lie above a log which had just been cut; epochs that begin above its end, or above the first segment's beginning.

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
