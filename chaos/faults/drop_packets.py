"""``drop-packets``: the effect of packet loss on the links of one broker.

A TCP proxy cannot lose packets: TCP would retransmit them, so an application sees packet loss as random stalls. This
fault models those stalls chunk by chunk. ``tc netem`` on the loopback device would hit every process of the machine and
outlive a killed conductor, so it is not used; the record says ``model: stall``.
"""

from __future__ import annotations

from chaos.faults.accepted import share
from chaos.faults.base import Probe
from chaos.faults.link_fault import LinkFault


class DropPackets(LinkFault):
    """Bites when chunks on the broker's links were held back."""

    name = "drop-packets"
    summary = "random retransmission stalls per chunk on all links of one broker (a model of packet loss)"
    duration_s = (2.0, 5.0)
    recovery_s = 1.5
    accepts = (share("loss"),)

    async def choose(self) -> str:
        self._broker_id, _ = await self._leader()
        peers = [name for name in self.cluster.link_names if f"b{self._broker_id}" in name.split("-")]
        # Not ZooKeeper's: two stalls in a row would be a session loss, which is isolate-broker's business.
        self._links = [name for name in peers if not name.endswith("-zk")]
        return f"{len(self._links)} links of broker {self._broker_id}"

    async def inject(self) -> None:
        parameters = self.injection.parameters
        loss = float(parameters.get("loss", 0.05))
        await self.damage.stall(self._links, probability=loss, min_ms=200, max_ms=400)

    async def bites(self) -> Probe:
        seen = {"broker": self._broker_id, "model": self.damage.model}
        return await self.held_back(self._links, seen, interval_ms=20)
