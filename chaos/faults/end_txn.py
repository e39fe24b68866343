"""The base of faults on EndTxn: draws the coordinator of a transactional id, and acts on frames of its clients' links.

Does not own what is done to the frames: each fault does.
"""

from __future__ import annotations

from chaos.faults.broker_links import links_of_clients
from chaos.faults.frame_fault import FrameFault
from chaos.faults.steps import choose_seat


class EndTxnFault(FrameFault):
    """Bites when the proxy acted on an EndTxn, or its response."""

    hits_client_links = True
    needs_coordinator = "transaction"
    targets = ("partition", "transactional_id")

    async def choose(self) -> str:
        wanted = self.injection.target.get("transactional_id")
        seat = await choose_seat(self.cluster, "transaction", self.random, wanted)
        self._where = {"broker": seat.broker_id}
        self._links = links_of_clients(self.cluster.link_names, seat.broker_id)
        return str(seat)
