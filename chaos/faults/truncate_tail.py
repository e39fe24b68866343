"""``truncate-tail``: one partition's log loses unsynced bytes at its end, as after a crash that tore a write."""

from __future__ import annotations

from chaos.faults.power_loss import PowerLoss


class TruncateTail(PowerLoss):
    """Bites like a power loss. All other partitions of the broker keep their data."""

    name = "truncate-tail"
    summary = "kill a partition's leader and cut unsynced bytes off that partition's files; restart it"

    @property
    def _word(self) -> str:
        return f"/{self.cluster.topic}-{self._partition}/"
