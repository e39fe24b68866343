"""What faults share that change the cluster through its admin APIs: asking every broker, and waiting until they agree.

Owns that. Which order is given, and what it must lead to, is each fault's own. Such a fault takes nothing away by
force: it changes the cluster while the load runs, and changes it back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar

from chaos.faults.admin_orders import ClusterOrders, SeenReplicas
from chaos.faults.base import Fault, PreconditionMissing, Reach, until
from chaos.schedules.kinds import Hits

#: How long brokers may take to carry an order out, and all of them to learn of it.
DONE_MS = 20_000
#: The topic's setting that says how long a replica that was deleted stays on the disk under another name. A minute is
#: usual: as long as that, something of the fault would be left.
DELETE_DELAY = "file.delete.delay.ms"
SOON_MS = "100"


class OrderFault(Fault):
    """A fault by orders to the controller. It bites only where brokers run that carry them out."""

    reach: ClassVar[Reach] = "journals"
    hits: ClassVar[Hits] = "traffic"
    least_brokers = 2

    @property
    def orders(self) -> ClusterOrders:
        return self.cluster.orders

    async def told(self, topic: str) -> list[Mapping[int, SeenReplicas]]:
        """The topic as each broker that runs reports it; nothing for one that does not answer."""
        return [{} if each is None else each for each in await self._answers(topic)]

    async def is_unknown(self, topic: str) -> bool:
        """Whether every broker that runs says that there is no such topic; one that does not answer says nothing."""
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
        """Whether all brokers that run report the partition and it fits, waiting for it within reason."""

        async def all_do() -> bool:
            told = await self.told(topic)
            return bool(told) and all(partition in each and fits(each[partition]) for each in told)

        return await self.wait(all_do)

    async def wait(self, condition: Callable[[], Awaitable[bool]]) -> bool:
        """Whether the condition becomes true in time."""
        return await until(condition, clock=self.clock, timeout_ms=DONE_MS, interval_ms=100)

    async def configured(self, topic: str, values: Mapping[str, str]) -> int:
        """How many brokers describe the topic with these values, waiting within reason for all that run."""
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
        """The bytes of the partition by broker, of those that hold it."""
        found = await asyncio.gather(*(self.orders.held_on(each, topic) for each in self.cluster.broker_ids))
        pairs = zip(self.cluster.broker_ids, found, strict=True)
        return {broker_id: each[partition] for broker_id, each in pairs if each is not None and partition in each}
