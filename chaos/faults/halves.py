"""``halves``: two halves of the brokers cannot reach each other. Clients and ZooKeeper reach all of them.

Jepsen's partition of the same name, except that both sides reach ZooKeeper: no session is lost, so a leader in the
smaller half stays leader, and its ISR has followers that cannot fetch.
"""

from __future__ import annotations

from chaos.faults.partition import NetworkPartition, between


class Halves(NetworkPartition):
    """The halves are drawn. With an odd number of brokers, one half has one more."""

    name = "halves"
    summary = "cut the links between two halves of the brokers"
    least_brokers = 2

    async def choose(self) -> str:
        await self._all_run()
        order = self.random.sample(self.cluster.broker_ids, len(self.cluster.broker_ids))
        half, rest = order[: len(order) // 2], order[len(order) // 2 :]
        return self._cuts(between(half, rest), _within(half) + _within(rest))


def _within(brokers: list[int]) -> list[str]:
    return [f"b{one}-b{other}" for one in brokers for other in brokers if one != other]
