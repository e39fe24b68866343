"""``duplicate-request``: requests of one API arrive at a leader twice, one right after the other.

This is what a retry looks like if the first request was only slow. The client gets the first response; the proxy
swallows the second one.
"""

from __future__ import annotations

from chaos.faults.base import Probe
from chaos.faults.damage import FrameAct
from chaos.faults.request_fault import RequestFault

#: A broker answers a repeated Fetch when it has waited for records.
_ANSWERED_MS = 3_000


class DuplicateRequest(RequestFault):
    """Bites when the proxy sent requests twice and swallowed answers to them.

    A broker cannot tell a repeated batch from a new one if it carries no producer ID.
    """

    name = "duplicate-request"
    summary = "deliver requests of one API to a leader twice, from the n-th on"
    needs_idempotence = True

    def _draw(self) -> str:
        return "twice"

    def act(self) -> FrameAct:
        return self._on_these("repeat", self._count(self.random.randint(1, 20)))

    async def bites(self) -> Probe:
        acted = await super().bites()
        return await self._with_consequence(
            acted, "dropped_bytes", lambda link: link.dropped_response_bytes, _ANSWERED_MS
        )
