"""Members of a group beside whole brokers in one loop: no thread, no sleep, and still each record has one reader."""

from __future__ import annotations

import asyncio
import threading

from cluster.client.async_admin import AsyncAdmin
from cluster.client.consumer.consumer import Consumer
from cluster.client.new_topic import NewTopic
from cluster.seams.memory_selector import LoopRunner, MemorySelector
from cluster.seams.randomness import Random
from tests.simulation.nodes import CLIENT, MemoryCluster
from tests.simulation.test_clients import known, producer_of
from tests.support.virtual_time import LoopClock, run

PARTITIONS = 4
SETTINGS = {"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "3"}


def member_of(cluster: MemoryCluster, number: int, **config: object) -> Consumer:
    transport = cluster.network.transport(CLIENT)
    own = MemorySelector(transport)
    keys = {key.replace("_", "."): value for key, value in config.items()}
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 300,
            "retry.backoff.ms": 20,
            **keys,
        },
        selector=MemorySelector(transport),
        clock=LoopClock(),
        random=Random(number),
        group_selector=own,
        group_runner=LoopRunner(own),
    )
    consumer.subscribe(["u"])
    return consumer


def test_members_share_while_the_coordinator_dies() -> None:
    """Two members, whose coordinator is killed and one of whom leaves: each record is read, in the end all is
    committed, and who comes next has nothing left to read.
    """

    async def body(cluster: MemoryCluster) -> None:
        admin = AsyncAdmin(cluster.bootstrap.split(","), cluster.network.transport(CLIENT), LoopClock(), 30_000)
        await admin.create_topics([NewTopic("u", PARTITIONS, 3)])
        producer = producer_of(cluster, linger_ms=5, retry_backoff_ms=10)
        await known(cluster, producer)
        assert producer.send("u", b"").done()
        await cluster.until(lambda: not producer.send("u", b"x", partition=0).done())
        members = [member_of(cluster, 1, enable_auto_commit=True), member_of(cluster, 2, enable_auto_commit=True)]
        read: set[tuple[int, int]] = set()

        def all_poll() -> None:
            for member in members:
                read.update((record.partition, record.offset) for record in member.poll(0))

        def have_shared() -> bool:
            all_poll()
            shares = [set(member.assignment()) for member in members]
            return all(shares) and sum(map(len, shares)) == PARTITIONS == len(set().union(*shares))

        await cluster.until(have_shared)
        coordinator = (await admin.describe_groups(["g"]))["g"].coordinator_id
        futures = []
        for number in range(60):
            if number == 20:
                await cluster.crash(coordinator)
            futures.append(producer.send("u", b"%d" % number, partition=number % PARTITIONS))
            all_poll()
            await asyncio.sleep(0.05)
        await cluster.until(lambda: all(future.done() for future in futures))
        wanted = {(number % PARTITIONS, future.result(0).offset) for number, future in enumerate(futures)}

        def have_read() -> bool:
            all_poll()
            return wanted <= read

        await cluster.until(have_read)
        members.pop(0).close()
        await cluster.until(lambda: all_poll() or len(members[0].assignment()) == PARTITIONS)
        members.pop().close()
        await asyncio.sleep(2)
        third = member_of(cluster, 3, auto_offset_reset="none")
        await cluster.until(lambda: third.poll(0) == [] and len(third.assignment()) == PARTITIONS)
        ends = {partition: offset + 1 for partition, offset in sorted(wanted)}
        await cluster.until(lambda: third.poll(0) == [] and _positions(third) == ends)
        third.close()
        producer.close()
        await admin.close()
        await asyncio.sleep(1)

    async def main() -> None:
        async with MemoryCluster(3, SETTINGS) as cluster:
            await cluster.create_topic("t")
            await body(cluster)

    threads = threading.active_count()
    run(main())
    assert threading.active_count() == threads


def _positions(consumer: Consumer) -> dict[int, int]:
    positions = {}
    for key in consumer.assignment():
        try:
            positions[key[1]] = consumer.position(key, 0)
        except TimeoutError:
            return {}
    return positions
