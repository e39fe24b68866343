"""``truncate-tail``: one partition's log loses unsynced bytes at its end, as after a crash that tore a write."""

from __future__ import annotations

from chaos.faults.power_loss import LosePower


class TruncateTail(LosePower):
    """Bites as a power loss does. All other partitions of the broker keep what they had."""

    name = "truncate-tail"
    summary = "end the broker that leads a partition, and cut unsynced bytes off that partition's files; restart it"

    @property
    def _word(self) -> str:
        return f"/{self.cluster.topic}-{self._partition}/"
