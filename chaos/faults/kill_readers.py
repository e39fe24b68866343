"""``kill-readers``: SIGKILL the readers of one client, with what they had fetched and not noted.

Brokers must give up fetch sessions and connections of a client that says nothing. Needs readers of two clients
(``--readers``): the others continue.
"""

from __future__ import annotations

from chaos.faults.kill_load import KillLoad


class KillReaders(KillLoad):
    """One process of live readers; the final readers of the run are others."""

    name = "kill-readers"
    summary = "SIGKILL the process of the readers of one client; the readers of another client continue"
    part = "readers"
    kills_load = "readers"

    async def done(self, name: str) -> int:
        return await self._load.handed(name)
