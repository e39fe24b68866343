"""``delay-markers``: all WriteTxnMarkers requests from coordinators to other brokers arrive late.

Every transaction stays undecided in its partitions for a while after its producer has learned the outcome. So do the
offsets of a group that are part of the transaction.
"""

from __future__ import annotations

from typing import ClassVar

from chaos.faults.accepted import integer
from chaos.faults.base import PreconditionMissing, Reach
from chaos.faults.damage import FrameAct
from chaos.faults.frame_fault import FrameFault
from cluster.protocol.apis import ApiKey


class DelayMarkers(FrameFault):
    """The delay is up to a second, unless ``delay_ms`` is given. Coordinators wait longer than that for a response."""

    name = "delay-markers"
    summary = "delay WriteTxnMarkers from all transaction coordinators to other brokers"
    reach: ClassVar[Reach] = "other-links"
    least_brokers = 2
    needs_coordinator = "transaction"
    targets = ("partition",)
    accepts = (integer("delay_ms", 1, 60_000),)

    async def choose(self) -> str:
        if not await self.cluster.coordinated("transaction"):
            raise PreconditionMissing("no transactional id is in use")
        ends = [(name, *name.split("-", 1)) for name in self.cluster.link_names]
        brokers = {opener for _, opener, other in ends if other == "zk"}
        self._links = [name for name, opener, other in ends if {opener, other} <= brokers]
        self._where = {"links": self._links}
        if not self._links:
            raise PreconditionMissing("no link leads from one broker to another")
        return f"{', '.join(self._links)}, markers later"

    def act(self) -> FrameAct:
        delay_ms = self.injection.parameters.get("delay_ms") or self.random.randint(200, 1_000)
        return FrameAct("delay", (int(ApiKey.WRITE_TXN_MARKERS),), "request", delay_ms=int(delay_ms))
