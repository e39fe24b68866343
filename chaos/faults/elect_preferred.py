"""``elect-preferred``: another replica becomes the preferred leader of a partition, and is elected on request.

A healthy partition is led by its preferred leader. So the order of its replicas is changed first (a reassignment to the
same brokers), then ElectLeaders requests the election (KIP-460). Both are undone in the same way. Nothing fails in
between: the old leader is alive and in sync, and must stop acknowledging at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from chaos.faults.base import PreconditionMissing, Probe
from chaos.faults.order_fault import OrderFault

#: How the controller's journal names an election on request, or by the automatic rebalance.
REASON = "preferred replica"


class ElectPreferred(OrderFault):
    """Bites when every broker reports the new leader in a later epoch, and the controllers' journals have that epoch
    with its reason."""

    name = "elect-preferred"
    summary = (
        "make another replica the preferred leader of a partition and have it elected (ElectLeaders), then undo both"
    )
    duration_s = (2.0, 3.0)
    recovery_s = 2.0
    needs_sync = True
    least_replicas = 2

    _is_ordered = False

    async def choose(self) -> str:
        await self._full_isrs()
        now = await self.partition_now()
        others = [each for each in now.replicas if each in now.isr and each != now.leader]
        if now.leader < 0 or not others:
            raise PreconditionMissing(f"partition {self._partition} has no leader with others in sync")
        self._origin, self._epoch = now.replicas, now.leader_epoch
        self._wanted = self.random.choice(others)
        self._order = (self._wanted, *(each for each in now.replicas if each != self._wanted))
        order = ", ".join(map(str, self._order))
        return f"partition {self.cluster.topic}-{self._partition}, replicas in the order {order}"

    async def inject(self) -> None:
        self._elections = await self.cluster.elections(self.cluster.topic, self._partition, REASON)
        self._is_ordered = True
        self._said = await self._elect(self._order)

    async def bites(self) -> Probe:
        led = await self._leads(self._wanted)
        began = await self.cluster.elections(self.cluster.topic, self._partition, REASON) - self._elections
        seen = {"elected": self._wanted, "leader_moved": led, "elections": began, "answer": self._said}
        return Probe(led and began > 0, seen)

    async def heal(self) -> None:
        if self._is_ordered:
            await self._elect(self._origin)

    async def gone(self) -> Probe:
        first = self._origin[0]
        back = await self.agree(
            self.cluster.topic, self._partition, lambda seen: seen.replicas == self._origin and seen.leader == first
        )
        began = await self.cluster.elections(self.cluster.topic, self._partition, REASON) - self._elections
        rejoined = await self._rejoined()
        seen = {"elected": first, "leader_back": back, "elections": began, "isr_full": rejoined}
        return Probe(back and rejoined, seen)

    async def _elect(self, order: Sequence[int]) -> str:
        """Put the replicas in this order and have the first one elected; returns the name of the error code."""
        topic, partition, wanted = self.cluster.topic, self._partition, tuple(order)
        await self.orders.reassign(topic, partition, wanted)
        if not await self.agree(topic, partition, lambda seen: seen.replicas == wanted):
            raise TimeoutError(f"{topic}-{partition} did not get its replicas in the order {list(wanted)}")
        said = ""

        async def done() -> bool:
            nonlocal said
            said = await self.orders.elect(topic, partition)
            return said == "NONE"

        await self.wait(done)
        return said

    async def _leads(self, broker_id: int) -> bool:
        return await self.agree(
            self.cluster.topic,
            self._partition,
            lambda seen: seen.leader == broker_id and seen.leader_epoch > self._epoch,
        )
