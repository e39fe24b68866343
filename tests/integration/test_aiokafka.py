"""aiokafka against ``gapless up``: transactions and groups of a client that is written for asyncio."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import aiokafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, ProducerFenced
from aiokafka.structs import TopicPartition

from tests.support.kafka_clients import TIMEOUT_S
from tests.support.up_cluster import UpCluster

pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(180)]

PARTITIONS = 4
#: Records of each partition.
COUNT = 5

Values = list[bytes]


class Flow:
    """One test's topic and clients, all on one cluster."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.topic = new_name("aio")
        self.group_id = new_name("group")

    async def create(self, topic: str, partitions: int = PARTITIONS) -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        try:
            await admin.create_topics([NewTopic(topic, partitions, 3)], timeout_ms=int(TIMEOUT_S * 1000))
        finally:
            await admin.close()

    @asynccontextmanager
    async def producer(self, **settings: Any) -> AsyncIterator[aiokafka.AIOKafkaProducer]:
        made = aiokafka.AIOKafkaProducer(bootstrap_servers=self.bootstrap, **settings)
        await made.start()
        try:
            yield made
        finally:
            await made.stop()

    @asynccontextmanager
    async def consumer(self, *topics: str, **settings: Any) -> AsyncIterator[aiokafka.AIOKafkaConsumer]:
        defaults = {
            "group_id": self.group_id,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "heartbeat_interval_ms": 200,
            "session_timeout_ms": 6000,
        }
        made = aiokafka.AIOKafkaConsumer(*topics, bootstrap_servers=self.bootstrap, **{**defaults, **settings})
        await made.start()
        try:
            yield made
        finally:
            await made.stop()

    async def fill(self) -> None:
        async with self.producer(acks="all") as producer:
            for partition in range(PARTITIONS):
                for number in range(COUNT):
                    await producer.send_and_wait(self.topic, b"%d" % number, partition=partition)

    async def committed_values(self, topic: str, partition: int, count: int) -> Values:
        """The first ``count`` that are read under read_committed."""
        place = TopicPartition(topic, partition)
        async with self.consumer(group_id=None, isolation_level="read_committed") as consumer:
            consumer.assign([place])
            return [(await in_time(consumer.getone())).value for _ in range(count)]


def new_name(kind: str) -> str:
    return f"{kind}-{uuid.uuid4().hex[:8]}"


async def in_time(work: Coroutine[Any, Any, Any]) -> Any:
    return await asyncio.wait_for(work, TIMEOUT_S)


def flow(shared_cluster: UpCluster, steps: Callable[[Flow], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        made = Flow(shared_cluster.bootstrap)
        await made.create(made.topic)
        await steps(made)

    asyncio.run(main())


def test_all_or_nothing(shared_cluster: UpCluster) -> None:
    """What is committed is read under read_committed, in every partition; what is aborted is not."""

    async def steps(case: Flow) -> None:
        async with case.producer(transactional_id=new_name("id")) as producer:
            for value, commit in ((b"a", True), (b"b", False), (b"c", True)):
                await producer.begin_transaction()
                for partition in range(PARTITIONS):
                    await producer.send_and_wait(case.topic, value, partition=partition)
                await (producer.commit_transaction() if commit else producer.abort_transaction())
        for partition in range(PARTITIONS):
            assert await case.committed_values(case.topic, partition, 2) == [b"a", b"c"]

    flow(shared_cluster, steps)


def test_a_second_producer_fences_the_first(shared_cluster: UpCluster) -> None:
    """The one that was there cannot commit anymore, and what it wrote is aborted."""

    async def steps(case: Flow) -> None:
        transactional_id = new_name("id")
        async with case.producer(transactional_id=transactional_id) as first:
            await first.begin_transaction()
            await first.send_and_wait(case.topic, b"of the past", partition=0)
            async with case.producer(transactional_id=transactional_id) as second:
                with pytest.raises(ProducerFenced):
                    await first.commit_transaction()
                await second.begin_transaction()
                await second.send_and_wait(case.topic, b"kept", partition=0)
                await second.commit_transaction()
        assert await case.committed_values(case.topic, 0, 1) == [b"kept"]

    flow(shared_cluster, steps)


@pytest.mark.parametrize("commit", [True, False])
def test_offsets_in_the_transaction(shared_cluster: UpCluster, commit: bool) -> None:
    """They are committed with the records that were made of what was read, or not at all."""

    async def steps(case: Flow) -> None:
        await case.fill()
        made_of = new_name("made")
        await case.create(made_of, 1)
        place = TopicPartition(case.topic, 0)
        async with case.consumer() as consumer, case.producer(transactional_id=new_name("id")) as producer:
            consumer.assign([place])
            read = [(await in_time(consumer.getone())).value for _ in range(COUNT)]
            await producer.begin_transaction()
            for value in read:
                await producer.send_and_wait(made_of, value, partition=0)
            await producer.send_offsets_to_transaction({place: COUNT}, case.group_id)
            await (producer.commit_transaction() if commit else producer.abort_transaction())
            # The next one begins when the markers of this one are written, those of the offsets too.
            await producer.begin_transaction()
            await producer.send_and_wait(made_of, b"end", partition=0)
            await producer.commit_transaction()
            assert await in_time(consumer.committed(place)) == (COUNT if commit else None)
        expected = [*read, b"end"] if commit else [b"end"]
        assert await case.committed_values(made_of, 0, len(expected)) == expected

    flow(shared_cluster, steps)


def test_members_share_one_is_lost_and_the_next_resumes(shared_cluster: UpCluster) -> None:
    """Two share the partitions; one that goes without a word loses its own at the end of its session; what was
    committed is where the next one begins."""

    async def steps(case: Flow) -> None:
        await case.fill()
        async with case.consumer(case.topic) as first:
            read = [await in_time(first.getone()) for _ in range(PARTITIONS * COUNT)]
            assert {each.partition for each in read} == set(range(PARTITIONS))
            await first.commit()
            second = await _started(case)
            await _until(first, second, lambda: len(first.assignment()) == len(second.assignment()) == PARTITIONS // 2)
            await _vanish(second)
            await _until(first, None, lambda: len(first.assignment()) == PARTITIONS)
            await case.fill()
            again = [await in_time(first.getone()) for _ in range(PARTITIONS * COUNT)]
            assert {each.offset for each in again} == set(range(COUNT, 2 * COUNT))
            await first.commit()
        await case.fill()
        async with case.consumer(case.topic) as third:
            resumed = [await in_time(third.getone()) for _ in range(PARTITIONS * COUNT)]
            assert {each.offset for each in resumed} == set(range(2 * COUNT, 3 * COUNT))

    flow(shared_cluster, steps)


async def _started(case: Flow) -> aiokafka.AIOKafkaConsumer:
    consumer = aiokafka.AIOKafkaConsumer(
        case.topic,
        bootstrap_servers=case.bootstrap,
        group_id=case.group_id,
        enable_auto_commit=False,
        heartbeat_interval_ms=200,
        session_timeout_ms=6000,
    )
    await consumer.start()
    return consumer


async def _vanish(consumer: aiokafka.AIOKafkaConsumer) -> None:
    """Close its connections and stop its tasks without LeaveGroup, as a process does that is killed."""
    consumer._coordinator._maybe_leave_group = _nothing
    await consumer.stop()


async def _nothing() -> None:
    """Instead of LeaveGroup."""


async def _until(
    first: aiokafka.AIOKafkaConsumer, second: aiokafka.AIOKafkaConsumer | None, is_so: Callable[[], bool]
) -> None:
    """Poll both until it is so: a member joins again while it is polled."""

    async def poll() -> None:
        while not is_so():
            for consumer in (first, second):
                if consumer is not None:
                    await consumer.getmany(timeout_ms=50)

    await in_time(poll())


def test_an_unknown_group_has_nothing_committed(shared_cluster: UpCluster) -> None:
    """And an offset of a partition that is not assigned to anyone can be committed by a consumer without a group's
    members."""

    async def steps(case: Flow) -> None:
        place = TopicPartition(case.topic, 1)
        async with case.consumer() as consumer:
            consumer.assign([place])
            assert await in_time(consumer.committed(place)) is None
            await consumer.commit({place: 3})
            assert await in_time(consumer.committed(place)) == 3
            with pytest.raises((KafkaError, ValueError)):
                await consumer.commit({TopicPartition("nowhere", 0): 3})

    flow(shared_cluster, steps)
