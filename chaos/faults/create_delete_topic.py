"""``create-delete-topic``: topics are made, deleted and recreated beside the load, by the same controller.

One of them is deleted and recreated with the same name: brokers must not mistake the replicas of the deleted topic for
those of the new one (KIP-516). In the end, all topics are deleted.
"""

from __future__ import annotations

from chaos.faults.accepted import integer
from chaos.faults.base import Probe
from chaos.faults.topics_beside import TopicsBeside
from verifier.evidence.how_many import how_many

_PARTITIONS = 3
_TOPICS = (2, 4)


class CreateDeleteTopic(TopicsBeside):
    """Bites when every broker reports the topics, every replica is on a disk, and a record went through each topic.

    It is over when no broker reports them, and no directory of them is left.
    """

    name = "create-delete-topic"
    summary = "create topics beside the load, one of them twice, and delete them"
    duration_s = (2.0, 3.5)
    recovery_s = 2.0
    accepts = (integer("topics", 1, 10),)

    async def choose(self) -> str:
        self.start()
        await self._all_run()
        drawn = self.random.randint(*_TOPICS)
        self._count = int(self.injection.parameters.get("topics", drawn))
        return f"{how_many(self._count, 'topic')} {self.topic_name(0)}{', ...' * (self._count > 1)}"

    async def inject(self) -> None:
        first = self.topic_name(0)
        await self.make(first, _PARTITIONS)
        self._former = await self.orders.round_trip(first, 0)
        await self.orders.delete_topic(first)
        await self.wait(self._is_gone)
        for number in range(self._count):
            await self.make(self.topic_name(number), _PARTITIONS)

    async def _is_gone(self) -> bool:
        return await self.is_unknown(self.topic_name(0))

    async def bites(self) -> Probe:
        stored = 0
        known = 0
        for topic in self._made:
            # in the log of the deleted topic, the record would not be the first one
            trip = await self.orders.round_trip(topic, 0)
            stored += trip.was_read and trip.offset == 0
            known += await self.agree(topic, _PARTITIONS - 1, lambda seen: len(seen.isr) == self.replicas)
        wanted = self._count * _PARTITIONS * self.replicas

        async def all_there() -> bool:
            return await self._on_disks() == wanted

        await self.wait(all_there)
        directories = await self._on_disks()
        seen = {
            "topics_known": known,
            "replica_directories": directories,
            "records_read": stored,
            "recreated": self._former.was_read,
        }
        whole = known == stored == self._count == len(self._made)
        return Probe(whole and directories == wanted and self._former.was_read, seen)

    async def _on_disks(self) -> int:
        return sum(map(len, (await self.directories()).values()))
