"""``refuse``: clients' connections to a leader end, and new ones are refused for a while, as if no one listened.

The proxy closes its listener, so the operating system refuses connections (Toxiproxy's ``enabled: false``). The broker
is healthy and stays leader.
"""

from __future__ import annotations

from chaos.faults.down_link import DownLink


class Refuse(DownLink):
    """Takes down the links of producers and readers to the leader of a partition, or ``link: NAME``."""

    name = "refuse"
    summary = "end clients' connections to a leader and refuse new ones"
    duration_s = (1.0, 3.0)
    hits_client_links = True

    async def _drawn(self) -> list[str]:
        leader, _ = await self._leader()
        return self._client_links(leader)

    async def inject(self) -> None:
        await self._look()
        await self.damage.take_down(self._links)
