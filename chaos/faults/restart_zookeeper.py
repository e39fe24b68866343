"""``restart-zookeeper``: SIGKILL ZooKeeper, and restart it on its data directory and port after a while.

Sessions survive if it is back in time: ZooKeeper stores them with its data and gives each its full timeout again.
"""

from __future__ import annotations

from chaos.faults.base import Probe
from chaos.faults.zookeeper_fault import ZooKeeperFault


class RestartZookeeper(ZooKeeperFault):
    """Bites when the process is gone and nothing serves at its address."""

    name = "restart-zookeeper"
    summary = "SIGKILL ZooKeeper; restart it on its own data directory and port"
    duration_s = (0.5, 4.0)
    recovery_s = 6.0
    done = "restarted"

    def _told(self) -> str:
        return f"ZooKeeper, pid {self._process.pid}"

    def _break(self) -> None:
        self._process.kill()

    async def bites(self) -> Probe:
        dead = not self._process.is_running()
        silent = not await self.cluster.zookeeper_answers(timeout_ms=200)
        return Probe(dead and silent, {"pid": self._process.pid, "dead": dead, "silent": silent})

    async def heal(self) -> None:
        if not self._process.is_running():
            await self.cluster.restart_zookeeper()
