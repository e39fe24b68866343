"""What a rule says about a file: plain data, and the names of the files. Owns no rule."""

from __future__ import annotations

from typing import NamedTuple

INDEX, CHECKPOINT, SNAPSHOT, TAIL = "index-mismatch", "checkpoint-mismatch", "snapshot-mismatch", "torn-tail"
ABORTED_INDEX = "aborted-index-audit"

LEADER_EPOCH = "leader-epoch-checkpoint"
RECOVERY_POINT = "recovery-point-offset-checkpoint"
HIGH_WATERMARK = "replication-offset-checkpoint"
LOG_START = "log-start-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"


class Finding(NamedTuple):
    """What is wrong in the same way at a number of ``places`` in one file.

    ``offset`` is the lowest of them, None if there are no offsets to tell; ``problem`` says it of that one in words.
    """

    check: str
    cause: str | None
    file: str
    offset: int | None
    places: int
    problem: str
