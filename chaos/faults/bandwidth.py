"""``bandwidth``: clients' requests to a leader flow at 10 to 50 KB/s on each connection.

Nothing is lost (Toxiproxy's ``bandwidth``): what exceeds the rate waits in the sender, until the sender gives up.
"""

from __future__ import annotations

from collections.abc import Mapping

from chaos.faults.accepted import integer
from chaos.faults.slowed_link import SlowedLink

#: The measurement sends as many bytes as should take this long. (1 KB/s is one byte per ms.)
_BURST_MS = 600


class Bandwidth(SlowedLink):
    """The rate is measured by how long a large ping takes on a connection of its own."""

    name = "bandwidth"
    summary = "limit clients' requests to a leader to 10 to 50 KB/s on each connection"
    accepts = (integer("rate_kb", 1, 200),)

    def draw(self) -> str:
        self._rate_kb = int(self.injection.parameters.get("rate_kb") or self.random.choice((10, 20, 50)))
        return f"at {self._rate_kb} KB/s"

    @property
    def burst_bytes(self) -> int:
        return self._rate_kb * _BURST_MS

    @property
    def nominal_ms(self) -> float:
        return _BURST_MS

    def toxic(self) -> tuple[str, Mapping[str, int]]:
        return "bandwidth", {"rate": self._rate_kb}
