"""``leader-with-clients``: the leader and the other brokers cannot reach each other. Clients and ZooKeeper reach all.

It still leads, and accepts records that no follower can fetch. With acks=all, none of them may be acknowledged.
"""

from __future__ import annotations

from chaos.faults.broker_links import links_of_clients
from chaos.faults.partition import NetworkPartition, between


class LeaderWithClients(NetworkPartition):
    """Cuts only the links between brokers."""

    name = "leader-with-clients"
    summary = "cut the links between a partition's leader and all other brokers; clients and ZooKeeper reach it"
    least_brokers = 2

    async def choose(self) -> str:
        leader, _ = await self._leader()
        await self._all_run()
        others = [broker_id for broker_id in self.cluster.broker_ids if broker_id != leader]
        clients = links_of_clients(self.cluster.link_names, leader)
        return self._cuts(between([leader], others), clients)
