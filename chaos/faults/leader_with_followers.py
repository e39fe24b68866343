"""``leader-with-followers``: the leader reaches all other brokers and ZooKeeper, but clients do not reach the leader.

Nothing is wrong within the cluster, so it elects no other leader: clients can only wait.
"""

from __future__ import annotations

from typing import ClassVar

from chaos.faults.base import Reach
from chaos.faults.partition import NetworkPartition


class LeaderWithFollowers(NetworkPartition):
    """The links of producers and readers to the leader are cut, and no other link."""

    name = "leader-with-followers"
    summary = "cut the links between clients and a partition's leader; the other brokers and ZooKeeper reach it"
    reach: ClassVar[Reach] = "clients"
    duration_s = (2.5, 5.0)
    least_brokers = 2
    hits_client_links = True

    async def choose(self) -> str:
        leader, _ = await self._leader()
        await self._all_run()
        clients = self._client_links(leader)
        others = [broker_id for broker_id in self.cluster.broker_ids if broker_id != leader]
        return self._cuts(clients, [f"b{other}-b{leader}" for other in others])
