"""``close-on``: a request or response of one API is delivered completely, and then its connection ends.

After a request, the response cannot come back: the client does not learn what the broker did. After a response, all
later responses in flight are lost.
"""

from __future__ import annotations

from chaos.faults.damage import FrameAct
from chaos.faults.ended_connection import EndedConnection


class CloseOn(EndedConnection):
    """The API, the number and the direction select the frame after which the connection ends."""

    name = "close-on"
    summary = "end a connection right after a request or response of one API"

    def _draw(self) -> str:
        return "and then its connection ends"

    def act(self) -> FrameAct:
        return self._on_these("close", self._count(self.random.randint(1, 3)))
