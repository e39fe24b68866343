"""``bridge``: two halves of the brokers cannot reach each other, but one broker between them reaches, and sees, all.

Jepsen's partition of the same name. The cluster has no two sides: what one half knows, the bridge may tell the other.
"""

from __future__ import annotations

from chaos.faults.partition import NetworkPartition, between


class Bridge(NetworkPartition):
    """The bridge is drawn, and so is who is in which half."""

    name = "bridge"
    summary = "cut the links between two halves of the brokers, except for one broker that reaches both"
    least_brokers = 3

    async def choose(self) -> str:
        self._all_run()
        bridge, *others = self.random.sample(self.cluster.broker_ids, len(self.cluster.broker_ids))
        half, rest = others[: len(others) // 2], others[len(others) // 2 :]
        return self._cuts(between(half, rest), between([bridge], others))
