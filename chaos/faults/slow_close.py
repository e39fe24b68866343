"""``slow-close``: the ends of connections between clients and a leader arrive late, data does not.

One side has closed the connection, while the other one still considers it open and writes to it (Toxiproxy's
``slow_close``).
"""

from __future__ import annotations

from collections.abc import Mapping

from chaos.faults.accepted import integer
from chaos.faults.slowed_link import SlowedLink

_PATIENCE_MS = 20_000


class SlowClose(SlowedLink):
    """Measured by how long a connection of the probe stays open after the probe has closed its side."""

    name = "slow-close"
    summary = "delay the ends of connections between clients and a leader by up to two seconds"
    accepts = (integer("delay_ms", 1, 10_000),)

    def draw(self) -> str:
        self._delay_ms = int(self.injection.parameters.get("delay_ms") or self.random.randint(500, 2_000))
        return f"on time, the ends of their connections {self._delay_ms} ms later"

    @property
    def nominal_ms(self) -> float:
        return self._delay_ms

    def toxic(self) -> tuple[str, Mapping[str, int]]:
        return "slow_close", {"delay": self._delay_ms}

    async def _took_ms(self, link: str) -> float | None:
        return await self.cluster.links.close_ms(link, timeout_ms=_PATIENCE_MS)
