"""Looks: somebody who asks the brokers again and again what is committed, and up to where records are stable.

Owns these questions, and which answers count: those of a broker that was the leader, by ZooKeeper, before and after.
Others, which were deposed and do not know it, may tell what is old, in Kafka as here.
"""

from __future__ import annotations

import asyncio

from cluster.broker.internal_topics import OFFSETS_TOPIC
from cluster.coordinator.partitioning import partition_for
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from cluster.seams.randomness import derive
from tests.simulation.client import Client
from tests.simulation.coordination.told import Look, StableEnd, Told
from tests.simulation.seen import TopicPartition
from tests.simulation.world import World

PAUSES_S = (0.2, 0.5, 1.0)
TIMEOUT_MS = 1000
LATEST = -1


class Looks:
    """Of groups, whose offsets are in ``count`` partitions, and of partitions that they read."""

    def __init__(self, world: World, groups: list[str], keys: list[TopicPartition], count: int, told: Told) -> None:
        self._world = world
        self._groups = groups
        self._keys = keys
        self._count = count
        self._told = told
        self._random = derive(world.topology.seed, "looks")
        #: Partition -> the last stable offset that was told.
        self._stable: dict[TopicPartition, int] = {}

    def __repr__(self) -> str:
        return f"<Looks at {self._groups}, {len(self._told.looks)} answers>"

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(self._random.choice(PAUSES_S))
            try:
                if self._groups and self._random.random() < 0.7:
                    await self._committed(self._random.choice(self._groups))
                else:
                    await self.stable(self._random.choice(self._keys))
            except (OSError, TimeoutError):
                continue

    async def _committed(self, group_id: str) -> None:
        place = (OFFSETS_TOPIC, partition_for(group_id, self._count))
        before = self._leader(place)
        asked_s = self._world.loop.now
        request = request_class(ApiKey.OFFSET_FETCH)
        topics: dict[str, list[int]] = {}
        for topic, number in self._keys:
            topics.setdefault(topic, []).append(number)
        wanted = [request.OffsetFetchRequestTopic(name=name, partition_indexes=each) for name, each in topics.items()]
        client = await self._client(before[0])
        try:
            answer = await client.send(ApiKey.OFFSET_FETCH, 7, group_id=group_id, topics=wanted, require_stable=True)
        finally:
            client.connection.close()
        if answer.error_code != ErrorCode.NONE or self._leader(place) != before:
            return
        for topic in answer.topics:
            for found in topic.partitions:
                if found.error_code == ErrorCode.NONE:
                    tag = None if found.committed_offset < 0 else found.metadata
                    key = (topic.name, found.partition_index)
                    self._told.looks.append(Look(group_id, key, asked_s, self._world.loop.now, tag))

    async def stable(self, key: TopicPartition) -> int | None:
        """The end for a reader of committed records. It never goes back, and never beyond the log's."""
        before = self._leader(key)
        client = await self._client(before[0])
        try:
            error, offset = await client.list_offset(key[0], LATEST, partition=key[1], only_committed=True)
        finally:
            client.connection.close()
        if error is not ErrorCode.NONE or self._leader(key) != before:
            return None
        self._told.ends.append(StableEnd(key, self._world.loop.now, offset))
        latest = self._stable.get(key, 0)
        self._stable[key] = max(latest, offset)
        if offset < latest:
            text = f"{key[0]}-{key[1]}: the last stable offset was {latest}, and then {offset}"
            self._world.problems.append(("watermark-regression", text))
        return offset

    def _leader(self, key: TopicPartition) -> tuple[int, int]:
        """(who leads, in which epoch), by ZooKeeper. Raises ``ConnectionError`` if nobody does."""
        state = self._world.state(*key)
        if state is None or not self._world.is_running(state.leader):
            raise ConnectionError("nobody leads")
        return state.leader, state.leader_epoch

    async def _client(self, broker_id: int) -> Client:
        return Client(await self._world.connect(broker_id, timeout_ms=TIMEOUT_MS))
