"""``kill-follower``: SIGKILL a follower of a chosen partition, restart it after a while."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.faults.base import PreconditionMissing, until
from chaos.faults.kill import Kill


class KillFollower(Kill):
    """Bites when the process is gone and the cluster no longer counts the broker as alive.

    The leader of the partition stays: it shrinks its ISR, and what the follower had not yet confirmed has to be fetched
    again after its recovery.
    """

    name = "kill-follower"
    summary = "SIGKILL a follower of a partition; restart it on its own data directory"
    least_replicas = 2

    async def choose(self) -> str:
        leader, _ = await self._leader()
        replicas = await self.cluster.replicas(self._partition)
        following = [each for each in await self._running() if each in replicas and each != leader]
        if not following:
            raise PreconditionMissing(f"no follower of partition {self._partition} runs")
        self._broker_id = self.random.choice(following)
        return f"broker {self._broker_id}, follower in {self.cluster.topic}-{self._partition}"

    async def noted(self) -> tuple[bool, Mapping[str, Any]]:
        async def counted_dead() -> bool:
            alive = await self.cluster.alive()
            return bool(alive) and self._broker_id not in alive

        out = await until(counted_dead, clock=self.clock, timeout_ms=self.patience_ms)
        return out, {"counted_dead": out}
