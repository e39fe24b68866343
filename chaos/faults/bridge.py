"""``bridge``: two halves of the brokers cannot reach each other, but one more broker reaches both.

Jepsen's partition of the same name. The halves are not isolated: the bridge can pass on what it learned from either.
"""

from __future__ import annotations

from chaos.faults.partition import NetworkPartition, between


class Bridge(NetworkPartition):
    """The bridge and the halves are drawn."""

    name = "bridge"
    summary = "cut the links between two halves of the brokers, except for one broker that reaches both"
    least_brokers = 3

    async def choose(self) -> str:
        await self._all_run()
        bridge, *others = self.random.sample(self.cluster.broker_ids, len(self.cluster.broker_ids))
        half, rest = others[: len(others) // 2], others[len(others) // 2 :]
        return self._cuts(between(half, rest), between([bridge], others))
