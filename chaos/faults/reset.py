"""``reset``: the producers' connections to a leader are reset in the middle of a request or response.

A ``reset_peer`` toxic responds to the next bytes of a connection with a RST to both ends. At a response (``direction:
response``, the default), batches were appended but the response is lost with the connection, and the client must resend
them; at a request (``direction: request``), the batch itself is lost, which only ``acks=0`` does not notice. While the
fault lasts, new connections are reset too.
"""

from __future__ import annotations

from typing import Any

from chaos.faults.accepted import one_way
from chaos.faults.base import Probe, until
from chaos.faults.damage import Direction, LinkTraffic
from chaos.faults.link_fault import NO_COUNTERS, LinkFault


class Reset(LinkFault):
    """Bites when producers' connections were closed, and what was sent on them was lost."""

    name = "reset"
    summary = "reset the producers' connections to a leader at their next responses or requests"
    duration_s = (0.2, 0.5)
    recovery_s = 1.5
    hits_client_links = True
    accepts = (one_way("direction"),)

    async def choose(self) -> str:
        self._broker_id, _ = await self._leader()
        self._link = f"producers-b{self._broker_id}"
        self._direction: Direction = self.injection.parameters.get("direction", "response")
        return f"{self._link}, at the next {self._direction} of the leader of {self.cluster.topic}-{self._partition}"

    async def inject(self) -> None:
        self._before = await self.cluster.links.stats(self._link)
        await self.damage.reset_connections(self._link, self._direction)

    async def bites(self) -> Probe:
        seen: dict[str, Any] = {"link": self._link, "direction": self._direction}

        async def closed() -> bool:
            now = await self.cluster.links.stats(self._link)
            if now is None or self._before is None:
                seen["counters"] = NO_COUNTERS
                return await self.damage.in_place()
            closed = seen["closed_connections"] = now.closed_connections - self._before.closed_connections
            # clients close connections, too; only a reset also loses bytes
            lost = seen["dropped_bytes"] = self._dropped(now) - self._dropped(self._before)
            return bool(closed > 0 and lost > 0)

        return Probe(await until(closed, clock=self.clock, timeout_ms=1_000, interval_ms=20), seen)

    def _dropped(self, traffic: LinkTraffic) -> int:
        return traffic.dropped_request_bytes if self._direction == "request" else traffic.dropped_response_bytes

    async def gone(self) -> Probe:
        clear = await self.damage.clear()
        before = await self.cluster.links.stats(self._link)

        async def flows() -> bool:
            now = await self.cluster.links.stats(self._link)
            return now is None or before is None or now.request_bytes > before.request_bytes

        # if leadership has moved, this broker may get no requests, so this is only recorded
        flowing = await until(flows, clock=self.clock, timeout_ms=2_000)
        return Probe(clear, {"link_clear": clear, "flows_again": flowing})
