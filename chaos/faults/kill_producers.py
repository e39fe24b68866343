"""``kill-producers``: SIGKILL a process of producers, with everything that it had in flight.

What it had sent may be stored without that anyone was told; what it had acknowledged must be. Needs several processes
of producers (``--load-processes``): the others continue.
"""

from __future__ import annotations

from chaos.faults.kill_load import KillLoad


class KillProducers(KillLoad):
    """One process of producers, whatever they write."""

    name = "kill-producers"
    summary = "SIGKILL one of several processes of producers; what it had in flight is unknown, the others continue"
    part = "producers"
    kills_load = "producers"

    async def done(self, name: str) -> int:
        return await self._load.acknowledged(name)
