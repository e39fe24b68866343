"""``kill-readers``: SIGKILL the readers of one client, with the records that they had fetched but not yet recorded.

Brokers must discard the fetch sessions and connections of a client that vanishes without closing them. Needs readers of
two clients (``--readers``); those of the other client continue.
"""

from __future__ import annotations

from chaos.faults.kill_load import KillLoad


class KillReaders(KillLoad):
    """Kills one process of live readers. The final readers are other processes."""

    name = "kill-readers"
    summary = "SIGKILL the process of the readers of one client; the readers of another client continue"
    part = "readers"
    kills_load = "readers"

    async def done(self, name: str) -> int:
        return await self._load.handed(name)
