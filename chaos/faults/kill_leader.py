"""``kill-leader``: SIGKILL the broker that leads a chosen partition, restart it after a while."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.faults.kill import Kill


class KillLeader(Kill):
    """Bites when the process is gone and another broker leads the partition."""

    name = "kill-leader"
    summary = "SIGKILL the broker that leads a partition; restart it on its own data directory"
    least_replicas = 2

    async def choose(self) -> str:
        self._broker_id, _ = await self._leader()
        return f"broker {self._broker_id}, leader of {self.cluster.topic}-{self._partition}"

    async def noted(self) -> tuple[bool, Mapping[str, Any]]:
        moved = await self._moved_from(self._broker_id, self.patience_ms)
        return moved, {"leader_moved": moved}
