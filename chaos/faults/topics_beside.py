"""The base of faults that work on topics of their own: creates the topics, and leaves nothing of them behind.

A run declares its own topic with its partitions and settings, and accounts for every record in it. So faults that would
change these work on other topics, on the same brokers, controller and disks. The names of these topics begin with that
of the run's topic, so that anyone who finds one knows where it comes from. Does not own what is done to the topics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import ClassVar

from chaos.faults.base import Probe, Reach
from chaos.faults.order_fault import DELETE_DELAY, SOON_MS, OrderFault

_MOST_REPLICAS = 3


class TopicsBeside(OrderFault):
    """Uses topics of its own. The heal deletes them; the fault is over when no broker has anything of them."""

    reach: ClassVar[Reach] = "topics"

    def start(self) -> None:
        """Begin without any topic."""
        self._made: list[str] = []
        self._label = f"{self.random.randrange(16**6):06x}"

    @property
    def replicas(self) -> int:
        """The replication factor of its topics: the number of brokers, at most three."""
        return min(_MOST_REPLICAS, len(self.cluster.broker_ids))

    def topic_name(self, number: int = 0) -> str:
        """The name of the n-th topic."""
        return f"{self.cluster.topic}-beside-{self._label}-{number}"

    async def make(self, topic: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
        """Create a topic with ``replicas`` replicas, whose data is removed soon after it is deleted."""
        if topic not in self._made:
            self._made.append(topic)  # before it is created, because a failed attempt must be undone, too
        whole = {DELETE_DELAY: SOON_MS, **(config or {})}
        await self.orders.create_topic(topic, partitions, self.replicas, whole)

    async def heal(self) -> None:
        for topic in self._made:
            await self.orders.delete_topic(topic)

    async def gone(self) -> Probe:
        left = await self.left()
        return Probe(left == (0, 0), {"topics_known": left[0], "replica_directories": left[1]})

    async def left(self) -> tuple[int, int]:
        """The number of topics that some broker may still know, and of replica directories on disks, even deleted ones.

        Waits up to ``DONE_MS`` until both are 0.
        """
        known = directories = 0

        async def none() -> bool:
            nonlocal known, directories
            known = sum([not await self.is_unknown(topic) for topic in self._made])
            directories = sum(map(len, (await self.directories()).values()))
            return known == directories == 0

        await self.wait(none)
        return known, directories

    async def directories(self) -> dict[int, tuple[str, ...]]:
        """The replica directories of its topics, by broker."""
        ids = self.cluster.broker_ids
        prefix = f"{self.cluster.topic}-beside-{self._label}-"
        found = await asyncio.gather(*(self.cluster.machine(broker_id).directories(prefix) for broker_id in ids))
        return dict(zip(ids, found, strict=True))
