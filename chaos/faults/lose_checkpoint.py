"""``lose-checkpoint``: a checkpoint is missing when the former leader of a partition is restarted."""

from __future__ import annotations

from collections.abc import Collection

from chaos.faults.accepted import one_of
from chaos.faults.lost_files import LostFiles

#: Kafka's names; the last one is the partition's own.
_CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "leader-epoch-checkpoint",
)


class LoseCheckpoint(LostFiles):
    """The checkpoint is drawn, unless given. The broker recovers its values from its logs or from the leader."""

    name = "lose-checkpoint"
    summary = "SIGKILL a partition's leader and remove one of its checkpoints; restart it"
    accepts = (one_of("checkpoint", *_CHECKPOINTS),)

    def _what(self) -> str:
        # the log start checkpoint is never drawn: unless records were deleted, it is empty or missing
        drawn = self.random.choice([each for each in _CHECKPOINTS if not each.startswith("log-start")])
        self._checkpoint = self.injection.parameters.get("checkpoint") or drawn
        return f"its {self._checkpoint}"

    def _where(self) -> tuple[str, Collection[str]]:
        in_partition = self._checkpoint.startswith("leader-epoch")
        return f"{self.cluster.topic}-{self._partition}" if in_partition else "", (self._checkpoint,)
