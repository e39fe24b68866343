"""Transactions while brokers die, stand still and lose each other: each is read wholly or not at all, and ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from cluster.broker.internal_topics import OFFSETS_TOPIC
from cluster.protocol.errors import ErrorCode
from tests.cluster.broker.scenes import TOPIC
from tests.cluster.broker.transactions.scenes import (
    PARTITIONS,
    TxnProducer,
    committed_offset,
    coordinator_of,
    is_over,
    is_served,
    read_committed,
    with_transactions,
)
from tests.simulation.nodes import MemoryCluster

PRODUCERS = 3
ROUNDS = 40
SEEDS = (*range(2), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 8)))
#: What is known of a transaction's outcome: committed, aborted, or None for either.
Outcomes = dict[bytes, bool | None]


class Worker:
    """One producer that begins again whenever something has gone wrong, as real ones do."""

    def __init__(self, cluster: MemoryCluster, number: int, random: Random) -> None:
        self.cluster = cluster
        self.number = number
        self.random = random
        self.transactional_id = f"id-{number}"
        self.outcomes: Outcomes = {}
        self.offsets: dict[int, bool | None] = {}

    async def run(self, rounds: int) -> None:
        producer: TxnProducer | None = None
        for round_ in range(rounds):
            while producer is None:
                producer = await self._begun()
            try:
                async with asyncio.timeout(20):
                    await self._transaction(producer, round_)
            except (OSError, AssertionError, KeyError):
                # A new incarnation: what is open is aborted, what is decided is finished.
                producer = None
            await asyncio.sleep(self.random.random() / 2)

    async def _begun(self) -> TxnProducer | None:
        producer = TxnProducer(self.cluster, self.transactional_id)
        try:
            async with asyncio.timeout(20):
                await retried(producer.init)
        except (OSError, AssertionError, KeyError):
            await asyncio.sleep(0.2)
            return None
        return producer

    async def _transaction(self, producer: TxnProducer, round_: int) -> None:
        value = b"%d-%d" % (self.number, round_)
        self.outcomes[value] = False
        partitions = [(TOPIC, number) for number in range(3)]
        await retried(lambda: added(producer, partitions))
        for _, number in partitions:
            code = (await producer.write(value, number)).error
            assert code is ErrorCode.NONE, code
        await retried(lambda: producer.add_offsets(self.transactional_id))
        await retried(lambda: offsets_committed(producer, self.transactional_id, round_ + 1))
        commit = self.random.random() < 0.7
        self.outcomes[value] = None if commit else False
        self.offsets[round_ + 1] = self.outcomes[value]
        await retried(lambda: producer.end(commit=commit))
        self.outcomes[value] = self.offsets[round_ + 1] = commit


async def added(producer: TxnProducer, partitions: list[tuple[str, int]]) -> ErrorCode:
    (code,) = set((await producer.add(partitions)).values())
    return code


async def offsets_committed(producer: TxnProducer, group_id: str, offset: int) -> ErrorCode:
    (code,) = (await producer.commit_offsets({(TOPIC, 0): offset}, group_id)).values()
    return code


async def retried(ask: Callable[[], Awaitable[ErrorCode]]) -> None:
    """Ask until it succeeds; an error that no client retries is raised."""
    while True:
        try:
            code = await ask()
        except (OSError, KeyError):
            code = ErrorCode.NETWORK_EXCEPTION
        if code is ErrorCode.NONE:
            return
        assert code.retriable, code
        await asyncio.sleep(0.1)


def is_all_committed(cluster: MemoryCluster, partition: int) -> bool:
    leader = cluster.leader(TOPIC, partition)
    if leader < 0:
        return False
    replica = cluster.nodes[leader].replicas.partitions[TOPIC, partition]
    return replica.high_watermark == replica.log.log_end_offset


async def break_things(cluster: MemoryCluster, random: Random, is_over: asyncio.Event) -> None:
    """One broker at a time, and in the end all are there."""
    while not is_over.is_set():
        await asyncio.sleep(random.random())
        broker_id = random.choice(cluster.broker_ids)
        match random.choice(("crash", "stop", "pause", "cut")):
            case "crash":
                await cluster.crash(broker_id)
            case "stop":
                await cluster.stop(broker_id)
            case "pause":
                cluster.pause(broker_id)
                await asyncio.sleep(5 * random.random())
                cluster.resume(broker_id)
                continue
            case "cut":
                await cut(cluster, broker_id, random)
                continue
        await asyncio.sleep(3 * random.random())
        await cluster.start(broker_id)
        if random.random() < 0.7:
            await cluster.until(lambda: len(cluster.isr(TOPIC)) == 3, 60)


async def cut(cluster: MemoryCluster, broker_id: int, random: Random) -> None:
    """Links of a broker, in one direction or both, for a while."""
    links = []
    for other in cluster.broker_ids:
        if other != broker_id:
            both = [(f"b{other}", f"b{broker_id}"), (f"b{broker_id}", f"b{other}")]
            links += random.choice(([], both[:1], both[1:], both))
    for link in links:
        cluster.network.cut(*link)
    await asyncio.sleep(5 * random.random())
    for link in links:
        cluster.network.heal(*link)


@pytest.mark.parametrize("seed", SEEDS)
def test_all_or_nothing(seed: int) -> None:
    """What was acknowledged is so, in every partition and for the group's offsets; no partition waits forever."""

    async def check(cluster: MemoryCluster, _producer: TxnProducer) -> None:
        random = Random(seed)
        workers = [Worker(cluster, number, Random(f"{seed} {number}")) for number in range(PRODUCERS)]
        is_enough = asyncio.Event()
        breaking = asyncio.get_running_loop().create_task(break_things(cluster, random, is_enough))
        await asyncio.gather(*(worker.run(ROUNDS) for worker in workers))
        is_enough.set()
        await breaking
        await cluster.until(lambda: all(is_served(cluster, number) for number in range(PARTITIONS)), 60)
        for worker in workers:
            # Whatever was left open is ended by the next incarnation.
            while await worker._begun() is None:
                pass
            await cluster.until(lambda worker=worker: is_over(cluster, worker.transactional_id), 60)
        # A leader that was elected just now does not know yet how far its followers are.
        await cluster.until(lambda: all(is_all_committed(cluster, number) for number in range(3)))
        read = [await read_committed(cluster, number) for number in range(3)]
        assert [sorted(each) for each in read[1:]] == [sorted(read[0])] * 2
        assert len(set(read[0])) == len(read[0])
        for worker in workers:
            for value, is_committed in worker.outcomes.items():
                if is_committed is not None:
                    assert (value in read[0]) is is_committed, (value, is_committed)
            assert coordinator_of(cluster, worker.transactional_id) > 0
            offset = await committed_offset(cluster, worker.transactional_id, (TOPIC, 0))
            newest = max((each for each, kept in worker.offsets.items() if kept), default=-1)
            maybe = {each for each, kept in worker.offsets.items() if kept is None and each > newest}
            assert offset in {newest, *maybe}, worker.offsets
            assert (b"%d-%d" % (worker.number, offset - 1) in read[0]) is (offset > 0)
        assert cluster.failures == []
        for node in cluster.nodes.values():
            for replica in node.replicas.partitions.values():
                if replica.leader is not None and replica.topic in (TOPIC, OFFSETS_TOPIC):
                    assert not replica.log.producers.transactions.open, replica

    with_transactions(check, brokers=3)
