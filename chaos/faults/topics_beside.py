"""What faults share that work on topics beside the load: creating them, and leaving nothing of them behind.

A run declares its own topic with all partitions and settings, and every record in it is accounted for. So what would
change that happens in topics of the fault's own, on the same brokers, controller and disks. Their names carry the
run's topic, so that anyone who meets one knows where it comes from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import ClassVar

from chaos.faults.base import Probe, Reach
from chaos.faults.order_fault import DELETE_DELAY, SOON_MS, OrderFault

_MOST_REPLICAS = 3


class TopicsBeside(OrderFault):
    """Has topics of its own. Heal deletes them all; the fault is over when no broker has anything of them."""

    reach: ClassVar[Reach] = "topics"

    def start(self) -> None:
        """Begin without any topic."""
        self._made: list[str] = []
        self._label = f"{self.random.randrange(16**6):06x}"

    @property
    def replicas(self) -> int:
        """How many each partition has."""
        return min(_MOST_REPLICAS, len(self.cluster.broker_ids))

    def topic_name(self, number: int = 0) -> str:
        """The name of the n-th topic."""
        return f"{self.cluster.topic}-beside-{self._label}-{number}"

    async def make(self, topic: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
        """Create it, with as many replicas as brokers, at most three."""
        if topic not in self._made:
            self._made.append(topic)  # before it is there: what fails halfway must be undone, too
        whole = {DELETE_DELAY: SOON_MS, **(config or {})}
        await self.orders.create_topic(topic, partitions, self.replicas, whole)

    async def heal(self) -> None:
        for topic in self._made:
            await self.orders.delete_topic(topic)

    async def gone(self) -> Probe:
        left = await self.left()
        return Probe(left == (0, 0), {"topics_known": left[0], "replica_directories": left[1]})

    async def left(self) -> tuple[int, int]:
        """How many of the topics brokers may still know, and directories of replicas on disks, deleted ones included;
        waiting within reason until there is neither."""
        known = directories = 0

        async def none() -> bool:
            nonlocal known, directories
            known = sum([not await self.is_unknown(topic) for topic in self._made])
            directories = sum(map(len, (await self.directories()).values()))
            return known == directories == 0

        await self.wait(none)
        return known, directories

    async def directories(self) -> dict[int, tuple[str, ...]]:
        """The directories of replicas of its topics on each broker's disk."""
        ids = self.cluster.broker_ids
        prefix = f"{self.cluster.topic}-beside-{self._label}-"
        found = await asyncio.gather(*(self.cluster.machine(broker_id).directories(prefix) for broker_id in ids))
        return dict(zip(ids, found, strict=True))
