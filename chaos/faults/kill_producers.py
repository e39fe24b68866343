"""``kill-producers``: SIGKILL a process of producers, with everything that it had in flight.

Records in flight may be stored although no client learned it; acknowledged records must be stored. Needs several
processes of producers (``--load-processes``); the others continue.
"""

from __future__ import annotations

from chaos.faults.kill_load import KillLoad


class KillProducers(KillLoad):
    """Kills one process of producers, with any workload."""

    name = "kill-producers"
    summary = "SIGKILL one of several processes of producers; what it had in flight is unknown, the others continue"
    part = "producers"
    kills_load = "producers"

    async def done(self, name: str) -> int:
        return await self._load.acknowledged(name)
