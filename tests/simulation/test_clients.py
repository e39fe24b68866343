"""Our own clients beside whole brokers in one loop: no thread, no sleep, and still what a program is promised."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from cluster.client.async_admin import AsyncAdmin
from cluster.client.consumer.consumer import Consumer
from cluster.client.new_topic import NewTopic
from cluster.client.producer.producer import Producer
from cluster.seams.memory_selector import LoopRunner, MemorySelector
from cluster.seams.randomness import Random
from tests.simulation.nodes import CLIENT, MemoryCluster
from tests.support.virtual_time import LoopClock, run

KEY = ("t", 0)


def producer_of(cluster: MemoryCluster, **config: object) -> Producer:
    selector = MemorySelector(cluster.network.transport(CLIENT))
    keys = {key.replace("_", "."): value for key, value in config.items()}
    return Producer(
        {"bootstrap.servers": cluster.bootstrap, **keys},
        selector=selector,
        clock=LoopClock(),
        random=Random(1),
        runner=LoopRunner(selector),
    )


async def known(cluster: MemoryCluster, producer: Producer) -> None:
    """A send cannot wait here: the first one only makes the producer ask for metadata."""
    assert producer.send("t", b"").done()
    await cluster.until(lambda: not producer.send("t", b"first").done())


def with_cluster(body: Callable) -> None:
    async def main() -> None:
        async with MemoryCluster(3) as cluster:
            await cluster.create_topic("t")
            await body(cluster)

    threads = threading.active_count()
    run(main())
    assert threading.active_count() == threads


def test_what_is_produced_is_consumed_across_the_death_of_a_leader() -> None:
    """Each record is acknowledged once at its offset, in order, and read there."""

    async def body(cluster: MemoryCluster) -> None:
        producer = producer_of(cluster, linger_ms=5, batch_size=300, retry_backoff_ms=10)
        selector = MemorySelector(cluster.network.transport(CLIENT))
        consumer = Consumer(
            {"bootstrap.servers": cluster.bootstrap, "auto.offset.reset": "none"},
            selector=selector,
            clock=LoopClock(),
            random=Random(2),
        )
        consumer.assign([KEY])
        consumer.seek(KEY, 0)
        await known(cluster, producer)
        futures = []
        for number in range(60):
            if number == 20:
                await cluster.crash(cluster.leader("t"))
            futures.append(producer.send("t", b"%d" % number, partition=0))
            await asyncio.sleep(0.01)
        await cluster.until(lambda: all(future.done() for future in futures))
        assert [future.result(0).offset for future in futures] == list(range(1, 61))
        records = []

        def read_on() -> bool:
            records.extend(consumer.poll(0))
            return len(records) > 60

        await cluster.until(read_on)
        assert [record.value for record in records] == [b"first", *(b"%d" % number for number in range(60))]
        producer.close()
        consumer.close()
        await asyncio.sleep(1)

    with_cluster(body)


def test_nobody_waits_in_the_loop() -> None:
    """A program in the loop is in the way of its own producer: what is not there at once fails, close gives up."""

    async def body(cluster: MemoryCluster) -> None:
        producer = producer_of(cluster, max_block_ms=60_000, linger_ms=10_000)
        assert "not present in metadata after 0 ms" in str(producer.send("t", b"v").exception())
        await known(cluster, producer)
        future = producer.send("t", b"v")
        assert not future.done()
        producer.close()
        await cluster.until(future.done)
        assert "closed forcefully" in str(future.exception())

    with_cluster(body)


def test_the_admin_client_runs_in_the_same_loop() -> None:
    """It needs no selector: it is asyncio's already."""

    async def body(cluster: MemoryCluster) -> None:
        admin = AsyncAdmin(cluster.bootstrap.split(","), cluster.network.transport(CLIENT), LoopClock(), 10_000)
        await admin.create_topics([NewTopic("u", 2, 3)])
        described = await admin.describe(["u"])
        assert sorted(described["u"].partitions) == [0, 1]
        await admin.close()

    with_cluster(body)
