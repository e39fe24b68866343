"""``pause-leader``: SIGSTOP the broker that leads a chosen partition, SIGCONT it after a while."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.faults.pause import Pause


class PauseLeader(Pause):
    """Bites when the process is stopped, does not respond, and another broker comes to lead the partition."""

    name = "pause-leader"
    summary = "SIGSTOP the broker that leads a partition for longer than its session; SIGCONT it"

    async def choose(self) -> str:
        self._broker_id, _ = await self._leader()
        return f"broker {self._broker_id}, leader of {self.cluster.topic}-{self._partition}"

    async def noted(self) -> tuple[bool, Mapping[str, Any]]:
        moved = await self._moved_from(self._broker_id, self.patience_ms)
        return moved, {"leader_moved": moved}
