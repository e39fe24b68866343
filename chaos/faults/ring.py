"""``ring``: the brokers form a ring, and each reaches only its neighbors there.

Jepsen's majorities ring: each broker sees a majority, and no two brokers see the same one. In a ring of three, all
brokers are neighbors. So there, each reaches only the next one; its links to the previous one are cut.
"""

from __future__ import annotations

from collections.abc import Sequence

from chaos.faults.partition import NetworkPartition


class Ring(NetworkPartition):
    """The order of the ring is drawn."""

    name = "ring"
    summary = "cut the links of each broker to all but its neighbors in a ring (of three brokers: to all but the next)"
    least_brokers = 3

    async def choose(self) -> str:
        await self._all_run()
        order = self.random.sample(self.cluster.broker_ids, len(self.cluster.broker_ids))
        whole = reached_in_ring(order)
        every = [f"b{one}-b{other}" for one in order for other in order if one != other]
        return self._cuts([link for link in every if link not in whole], whole)


def reached_in_ring(order: Sequence[int]) -> list[str]:
    """The links that stay intact in a ring with this order."""
    steps = (1,) if len(order) == 3 else (1, -1)
    return [f"b{one}-b{order[(place + step) % len(order)]}" for place, one in enumerate(order) for step in steps]
