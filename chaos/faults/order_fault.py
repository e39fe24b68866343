"""The base of faults that change the cluster through its admin APIs: asks every broker, and waits until all agree.

Such a fault breaks nothing by force: it changes the cluster while the load runs, and changes it back. Does not own
which orders are given, or what they must lead to: each fault does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar

from chaos.faults.admin_orders import ClusterOrders, SeenReplicas
from chaos.faults.base import Fault, PreconditionMissing, Reach, until
from chaos.schedules.kinds import Hits

#: How long brokers may take to carry out an order and learn of the result.
DONE_MS = 20_000
#: The topic setting for how long a deleted replica stays on disk under another name. The default is a minute, for which
#: something of the fault would be left.
DELETE_DELAY = "file.delete.delay.ms"
SOON_MS = "100"


class OrderFault(Fault):
    """A fault that gives orders to the controller."""

    reach: ClassVar[Reach] = "journals"
    hits: ClassVar[Hits] = "traffic"
    least_brokers = 2

    @property
    def orders(self) -> ClusterOrders:
        return self.cluster.orders

    async def told(self, topic: str) -> list[Mapping[int, SeenReplicas]]:
        """The partitions of the topic as each running broker reports them; empty for one that does not answer."""
        return [{} if each is None else each for each in await self._answers(topic)]

    async def is_unknown(self, topic: str) -> bool:
        """Whether every running broker answers that the topic does not exist."""
        found = await self._answers(topic)
        return bool(found) and all(each is not None and not each for each in found)

    async def _answers(self, topic: str) -> list[Mapping[int, SeenReplicas] | None]:
        running = await self._running()
        return await asyncio.gather(*(self.orders.topic_on(broker_id, topic) for broker_id in running))

    async def partition_now(self) -> SeenReplicas:
        """The chosen partition of the run's topic. Raises PreconditionMissing if no broker reports it."""
        seen = [each[self._partition] for each in await self.told(self.cluster.topic) if self._partition in each]
        if not seen:
            raise PreconditionMissing(f"no broker reports partition {self._partition}")
        return max(seen, key=lambda each: each.leader_epoch)

    async def agree(self, topic: str, partition: int, fits: Callable[[SeenReplicas], bool]) -> bool:
        """Whether all running brokers report the partition in a state that ``fits``. Waits up to ``DONE_MS``."""

        async def all_do() -> bool:
            told = await self.told(topic)
            return bool(told) and all(partition in each and fits(each[partition]) for each in told)

        return await self.wait(all_do)

    async def wait(self, condition: Callable[[], Awaitable[bool]]) -> bool:
        """Whether the condition becomes true within ``DONE_MS``."""
        return await until(condition, clock=self.clock, timeout_ms=DONE_MS, interval_ms=100)

    async def configured(self, topic: str, values: Mapping[str, str]) -> int:
        """How many running brokers describe the topic with these values. Waits for all of them up to ``DONE_MS``."""
        running = await self._running()
        agreeing = 0

        async def all_do() -> bool:
            nonlocal agreeing
            told = await asyncio.gather(*(self.orders.config_on(broker_id, topic) for broker_id in running))
            agreeing = sum(each is not None and values.items() <= each.items() for each in told)
            return agreeing == len(running)

        await self.wait(all_do)
        return agreeing

    async def held(self, topic: str, partition: int) -> Mapping[int, int]:
        """The bytes of the partition on each broker that has a replica."""
        found = await asyncio.gather(*(self.orders.held_on(each, topic) for each in self.cluster.broker_ids))
        pairs = zip(self.cluster.broker_ids, found, strict=True)
        return {broker_id: each[partition] for broker_id, each in pairs if each is not None and partition in each}
