"""``add-partitions``: a topic beside the load gets more partitions while the same brokers serve the load.

The run's own topic cannot grow: the run declares its partitions before the load begins, and each record's place and the
sentinels follow from them.
"""

from __future__ import annotations

from chaos.faults.accepted import integer
from chaos.faults.base import Probe
from chaos.faults.topics_beside import TopicsBeside

_AT_FIRST = 2
_ADDED = (1, 6)


class AddPartitions(TopicsBeside):
    """Bites when every broker reports the added partitions, with all their replicas in sync, and a record was written
    to each of them and read back."""

    name = "add-partitions"
    summary = "add partitions to a topic beside the load, and delete the topic afterwards"
    duration_s = (2.0, 3.0)
    recovery_s = 2.0
    accepts = (integer("added", 1, 50),)

    async def choose(self) -> str:
        self.start()
        await self._all_run()
        drawn = self.random.randint(*_ADDED)
        self._added = int(self.injection.parameters.get("added", drawn))
        return f"topic {self.topic_name()}, {_AT_FIRST} partitions and {self._added} more"

    async def inject(self) -> None:
        topic = self.topic_name()
        await self.make(topic, _AT_FIRST)
        await self.agree(topic, _AT_FIRST - 1, lambda seen: seen.leader >= 0)
        self._before = max(map(len, await self.told(topic)), default=0)
        await self.orders.add_partitions(topic, _AT_FIRST + self._added)

    async def bites(self) -> Probe:
        topic = self.topic_name()
        known = stored = held_bytes = 0
        for partition in range(_AT_FIRST, _AT_FIRST + self._added):
            known += await self.agree(topic, partition, lambda seen: len(seen.isr) == self.replicas)
            stored += (await self.orders.round_trip(topic, partition)).was_read
            held_bytes += min((await self.held(topic, partition)).values(), default=0)
        seen = {
            "partitions_before": self._before,
            "partitions_added": known,
            "records_read": stored,
            "stored_bytes": held_bytes,
        }
        bit = self._before == _AT_FIRST and known == stored == self._added and held_bytes > 0
        return Probe(bit, seen)
