"""``close-on``: a request or response of one API is delivered completely, and then its connection ends.

After a request, the response cannot come back: the broker does something that no client learns about. After a response,
what was in flight after it is lost.
"""

from __future__ import annotations

from chaos.faults.damage import FrameAct
from chaos.faults.ended_connection import EndedConnection


class CloseOn(EndedConnection):
    """API, number and direction say after which frame."""

    name = "close-on"
    summary = "end a connection right after a request or response of one API"

    def _draw(self) -> str:
        return "and then its connection ends"

    def act(self) -> FrameAct:
        return self._on_these("close", self._count(self.random.randint(1, 3)))
