"""``close-on``: a request or an answer of one API is delivered whole, and then its connection ends.

After a request, its answer has no way back: the broker does what no one learns of. After an answer, what was in flight
behind it is lost.
"""

from __future__ import annotations

from chaos.faults.damage import FrameAct
from chaos.faults.ended_connection import EndedConnection


class CloseOn(EndedConnection):
    """On which frame is told by its API, its number and its direction."""

    name = "close-on"
    summary = "end a connection right behind a request or an answer of one API"

    def _draw(self) -> str:
        return "and then its connection ends"

    def act(self) -> FrameAct:
        return self._on_these("close", self._count(self.random.randint(1, 3)))
