"""``slicer``: clients' requests to a leader arrive in small slices, with a pause after each (Toxiproxy's ``slicer``).

A broker reads each request in many pieces, cut anywhere: within its length, its header or its batches.
"""

from __future__ import annotations

from collections.abc import Mapping

from chaos.faults.accepted import integer
from chaos.faults.slowed_link import SlowedLink
from cluster.seams.units import ms_of_seconds, seconds_of_microseconds

#: The measurement sends this many slices.
_SLICES = 100


class Slicer(SlowedLink):
    """The pauses are measured by how long a large ping takes, which is cut into slices, too."""

    name = "slicer"
    summary = "cut clients' requests to a leader into small slices, with a pause of milliseconds after each"
    accepts = (integer("slice_bytes", 1, 1_000), integer("delay_us", 1, 50_000))

    def draw(self) -> str:
        parameters = self.injection.parameters
        self._slice_bytes = int(parameters.get("slice_bytes") or self.random.choice((64, 256, 512)))
        self._delay_us = int(parameters.get("delay_us") or self.random.randint(4_000, 8_000))
        return f"in slices of {self._slice_bytes} bytes, {self._delay_us:,} microseconds apart"

    @property
    def burst_bytes(self) -> int:
        return self._slice_bytes * _SLICES

    @property
    def nominal_ms(self) -> float:
        # no slice is larger than slice_bytes, so there are at least this many
        return ms_of_seconds(seconds_of_microseconds(_SLICES * self._delay_us))

    def toxic(self) -> tuple[str, Mapping[str, int]]:
        return "slicer", {"average_size": self._slice_bytes, "size_variation": 0, "delay": self._delay_us}
