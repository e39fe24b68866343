"""``cut-frame``: only a part of a request or response arrives, and then its connection ends.

That part must have no effect: no broker carries out half a request, and no client uses half a response.
"""

from __future__ import annotations

from dataclasses import replace

from chaos.faults.accepted import integer, one_way
from chaos.faults.damage import FrameAct
from chaos.faults.ended_connection import EndedConnection
from chaos.faults.request_fault import WHICH_FRAMES


class CutFrame(EndedConnection):
    """At least the last byte is missing. How many arrive is drawn: a part of the header, or much more."""

    name = "cut-frame"
    summary = "deliver only the first bytes of a request or response of one API, and end its connection"
    accepts = (*WHICH_FRAMES, one_way("direction"), integer("kept_bytes", 1, 1_000_000))

    def _draw(self) -> str:
        drawn = self.random.choice((1, 7, 20, 100, 1_000))
        self._kept_bytes = int(self.injection.parameters.get("kept_bytes") or drawn)
        return f"cut after {self._kept_bytes} bytes"

    def act(self) -> FrameAct:
        return replace(self._on_these("cut", self._count(self.random.randint(1, 3))), kept_bytes=self._kept_bytes)
