"""Our own transactional producer beside whole brokers that crash and stand still: all of a transaction, or nothing.

Owns a program that begins, commits and aborts, the faults of its cluster, and what a reader of committed records must
see in the end. Does not own retries, epochs or sequences: that is what is under test.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest

from cluster.client import FatalTransactionError, Producer, TransactionError, TransactionTimeout
from cluster.client.consumer.consumer import Consumer
from cluster.client.producer.delivery import ProduceError
from cluster.seams.memory_selector import LoopRunner, MemorySelector
from cluster.seams.randomness import Random, derive
from tests.simulation.nodes import CLIENT, MemoryCluster
from tests.support.virtual_time import LoopClock, run

TOPIC, PARTITIONS = "t", 3
PROPERTIES = {
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
TRANSACTIONS = 20
SEEDS = 3
MANY_SEEDS = 300
PAUSE_S = 0.01
#: The simulated time of one seed, at most.
LIMIT_S = 600


class Program:
    """One transactional id. ``told`` has, by number of a transaction, whether it is committed; None: not known."""

    def __init__(self, cluster: MemoryCluster, random: Random) -> None:
        self.cluster = cluster
        self.random = random
        self.told: dict[int, bool | None] = {}
        self.written: dict[int, set[int]] = {}
        self.counts: Counter[str] = Counter()
        self.producers: list[Producer] = []
        self.is_complete = False
        self.timeout_ms = random.choice((2_000, 60_000))

    async def run(self) -> None:
        producer = await self.another()
        for number in range(TRANSACTIONS):
            is_replaced = self.random.random() < 0.1
            try:
                if is_replaced:
                    producer, self.told[number] = await self.replaced(producer, number)
                else:
                    self.told[number] = await self.transaction(producer, number, commit=self.random.random() < 0.7)
            except FatalTransactionError as error:
                self.told[number] = None if error.may_be_committed else False
                self.counts[f"fatal {error.error_code.name}"] += 1
                producer = await self.another()
        # A reader knows by the last one that it has seen all; should it be committed twice, that is no mistake.
        while not self.is_complete:
            try:
                self.is_complete = await self.transaction(producer, TRANSACTIONS, commit=True) is True
            except FatalTransactionError:
                producer = await self.another()
        for each in self.producers:
            each.close()
        await asyncio.sleep(1)

    async def another(self) -> Producer:
        selector = MemorySelector(self.cluster.network.transport(CLIENT))
        config = {
            "bootstrap.servers": self.cluster.bootstrap,
            "transactional.id": "id",
            "transaction.timeout.ms": self.timeout_ms,
            "linger.ms": self.random.choice((0, 5, 50)),
            "request.timeout.ms": 1_000,
            "delivery.timeout.ms": self.random.choice((1_500, 30_000)),
            "retry.backoff.ms": 10,
            "retry.backoff.max.ms": 200,
            "reconnect.backoff.max.ms": 100,
        }
        producer = Producer(
            config, selector=selector, clock=LoopClock(), random=derive(1, "producer"), runner=LoopRunner(selector)
        )
        self.producers.append(producer)
        await self.repeat(producer.init_transactions)
        while True:
            try:
                producer.partitions_for(TOPIC)
                return producer
            except ProduceError:
                await asyncio.sleep(PAUSE_S)

    async def repeat(self, call: Callable[[], None]) -> None:
        """A program in the loop cannot wait in a call: it makes the same call again."""
        while True:
            try:
                return call()
            except TransactionTimeout:
                await asyncio.sleep(PAUSE_S)

    async def replaced(self, producer: Producer, number: int) -> tuple[Producer, bool | None]:
        """Another producer takes the id in the middle of a transaction, whose program does not know it."""
        self.counts["replaced"] += 1
        zombie = asyncio.get_running_loop().create_task(self.transaction(producer, number, commit=True))
        await asyncio.sleep(self.random.choice((0, 0.02, 0.2)))
        new = await self.another()
        try:
            return new, await zombie
        except FatalTransactionError as error:
            self.counts[f"zombie {error.error_code.name}"] += 1
            return new, None if error.may_be_committed else False

    async def transaction(self, producer: Producer, number: int, *, commit: bool) -> bool | None:
        producer.begin_transaction()
        partitions = range(PARTITIONS)
        if number < TRANSACTIONS:
            partitions = self.random.sample(partitions, self.random.randint(1, PARTITIONS))
        self.written[number] = set(partitions)
        may_be_committed = False
        try:
            for partition in partitions:
                producer.send(TOPIC, b"%d" % number, partition=partition)
                await asyncio.sleep(self.random.choice((0, 0, 0.02, 0.3)))
            if commit:
                await self.repeat(producer.commit_transaction)
                self.counts["committed"] += 1
                return True
        except FatalTransactionError:
            raise
        except TransactionError as error:
            self.counts[f"abortable {error.error_code.name}"] += 1
            may_be_committed = error.may_be_committed
        await self.repeat(producer.abort_transaction)
        self.counts["aborted"] += 1
        return None if may_be_committed else False


async def break_things(cluster: MemoryCluster, random: Random, program: asyncio.Task[None]) -> None:
    """One broker at a time, any of them, until the program is done."""
    while not program.done():
        await asyncio.sleep(random.choice((0.1, 0.5, 2)))
        broker_id = random.choice(list(cluster.nodes))
        if random.random() < 0.5:
            await cluster.crash(broker_id)
            await asyncio.sleep(random.choice((0.1, 1, 4)))
            await cluster.start(broker_id)
        else:
            cluster.pause(broker_id)
            await asyncio.sleep(random.choice((0.1, 0.8, 4)))
            cluster.resume(broker_id)
        await asyncio.sleep(random.choice((1, 3)))


async def committed(cluster: MemoryCluster) -> dict[int, list[int]]:
    """By partition, the numbers that a reader of committed records sees, up to the last transaction."""
    config = {"bootstrap.servers": cluster.bootstrap, "isolation.level": "read_committed", "auto.offset.reset": "none"}
    selector = MemorySelector(cluster.network.transport(CLIENT))
    with Consumer(config, selector=selector, clock=LoopClock(), random=Random(2)) as consumer:
        keys = [(TOPIC, partition) for partition in range(PARTITIONS)]
        consumer.assign(keys)
        for key in keys:
            consumer.seek(key, 0)
        seen: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}

        def read_on() -> bool:
            for record in consumer.poll(0):
                seen[record.partition].append(int(record.value))
            return all(TRANSACTIONS in numbers for numbers in seen.values())

        await cluster.until(read_on, 120)
    return seen


def play(seed: int) -> Counter[str]:
    """Raises ``AssertionError`` for what is not all or nothing."""
    random = derive(seed, "transactions")
    done: list[Program] = []

    async def main() -> None:
        async with MemoryCluster(3, PROPERTIES, seed=seed) as cluster:
            await cluster.create_topic(TOPIC, PARTITIONS)
            program = Program(cluster, derive(seed, "program"))
            running = asyncio.get_running_loop().create_task(program.run())
            try:
                await break_things(cluster, random, running)
                await running
                judge(program, await committed(cluster))
                assert cluster.failures == []
            finally:
                running.cancel()
        done.append(program)

    run(main(), timeout_s=LIMIT_S)
    return done[0].counts


def judge(program: Program, seen: dict[int, list[int]]) -> None:
    for numbers in ([each for each in one if each != TRANSACTIONS] for one in seen.values()):
        assert numbers == sorted(set(numbers)), f"twice, or out of order: {numbers}"
    for number, told in program.told.items():
        found = {partition for partition, numbers in seen.items() if number in numbers}
        legal = {True: [program.written[number]], False: [set()], None: [set(), program.written[number]]}[told]
        assert found in legal, f"transaction {number}: told {told}, written to {program.written[number]}, in {found}"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_all_or_nothing_whatever_breaks(seed: int) -> None:
    """What is told of a transaction is what a reader sees of it, in all partitions, once, in order."""
    assert play(seed)["committed"] > 0


@pytest.mark.full
@pytest.mark.timeout(7_200)
def test_all_or_nothing_in_many_schedules() -> None:
    """The same in 300 seeds; all that can happen to a transaction happens in some of them."""
    counts: Counter[str] = Counter()
    for seed in range(MANY_SEEDS):
        counts += play(seed)
    assert {"committed", "aborted", "replaced"} <= set(counts)
    assert counts["zombie PRODUCER_FENCED"] and any(what.startswith("abortable") for what in counts)
