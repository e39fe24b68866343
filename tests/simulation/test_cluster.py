"""Three brokers, their ZooKeeper and a client in one process: seeded faults, and nothing acknowledged is lost.

A seed fixes the faults and their times. What is checked after each: every acknowledged value stands once, at its
offset, on the replica that leads; all replicas are equal once healed; no broker failed.
"""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from cluster.protocol.batch import iter_batches
from cluster.protocol.errors import ErrorCode
from cluster.protocol.records import decode_records
from tests.cluster.control.virtual_time import run
from tests.simulation.client import Client, batch
from tests.simulation.nodes import MemoryCluster

TOPIC = "t"
PRODUCER = 4711
#: What a producer tries again; the others end it.
RETRIED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    }
)


class Writer:
    """An idempotent producer with one batch in flight, which tries again until it is told."""

    def __init__(self, cluster: MemoryCluster, random: Random) -> None:
        self.cluster = cluster
        self.random = random
        self.acknowledged: dict[int, int] = {}
        self.sequence = 0
        self.is_stopping = False
        self._client: Client | None = None

    async def run(self) -> None:
        while not self.is_stopping:
            await self._write(self.sequence)
            self.sequence += 1
            await asyncio.sleep(self.random.choice([0, 0.01, 0.1]))

    async def _write(self, sequence: int) -> None:
        records = batch(b"%d" % sequence, producer_id=PRODUCER, base_sequence=sequence)
        while True:
            try:
                answer = await (await self._leader()).produce(TOPIC, records, timeout_ms=1000)
            except (OSError, TimeoutError):
                answer = None
            if answer is not None and answer.error in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                self.acknowledged[sequence] = answer.base_offset
                return
            assert answer is None or answer.error in RETRIED, answer
            self._client = None
            await asyncio.sleep(0.05)

    async def _leader(self) -> Client:
        if self._client is None or self._client.connection.is_closed:
            leader = self.cluster.leader(TOPIC)
            if leader < 0:
                raise ConnectionError("nobody leads")
            self._client = Client(await self.cluster.connect(leader))
        return self._client


async def disturb(cluster: MemoryCluster, random: Random, steps: int) -> None:
    """Crash and restart brokers, cut links between them and to ZooKeeper, and heal it all."""
    for _ in range(steps):
        await asyncio.sleep(random.uniform(0.2, 2))
        broker = random.choice(cluster.broker_ids)
        other = random.choice([each for each in cluster.broker_ids if each != broker])
        match random.choice(["crash", "crash", "crash-leader", "cut", "cut-lossy", "isolate", "zookeeper", "stop"]):
            case "crash":
                await cluster.crash(broker)
                await asyncio.sleep(random.choice([0, 0.5, 3]))
                await cluster.start(broker)
            case "crash-leader":
                leader = cluster.leader(TOPIC)
                if leader > 0:
                    await cluster.crash(leader)
                    await asyncio.sleep(random.choice([0, 3]))
                    await cluster.start(leader)
            case "stop":
                await cluster.stop(broker)
                await cluster.start(broker)
            case "zookeeper":
                cluster.stores[broker].cut()
                await asyncio.sleep(random.choice([0.5, 3]))
                cluster.stores[broker].heal()
            case "isolate":
                links = [
                    pair for each in cluster.broker_ids if each != broker
                    for pair in ((f"b{broker}", f"b{each}"), (f"b{each}", f"b{broker}"))
                ]  # fmt: skip
                await cut(cluster, links, random)
            case kind:
                await cut(cluster, [(f"b{broker}", f"b{other}")], random, lossy=kind == "cut-lossy")


async def cut(cluster: MemoryCluster, links: list[tuple[str, str]], random: Random, *, lossy: bool = False) -> None:
    for link in links:
        cluster.network.cut(*link, lossy=lossy)
    await asyncio.sleep(random.choice([0.1, 1, 6]))
    for link in links:
        cluster.network.heal(*link)


def stored(data: bytes) -> dict[int, list[int]]:
    """Value -> its offsets, in a log without holes."""
    found: dict[int, list[int]] = {}
    expected = 0
    for position, header in iter_batches(data):
        assert header.base_offset == expected
        expected = header.next_offset
        for record in decode_records(data[position : position + header.size_bytes]):
            found.setdefault(int(record.value or b"-1"), []).append(record.offset)
    return found


async def story(seed: int, steps: int = 6) -> tuple[dict[int, int], bytes]:
    """One seed; returns what was acknowledged at which offset, and the log in the end."""
    random = Random(seed)
    delays = Random(seed + 1)
    async with MemoryCluster(3, delay=lambda _s, _d, _n: delays.choice([0.1, 0.3, 2.0]), seed=seed) as cluster:
        await cluster.create_topic(TOPIC)
        writer = Writer(cluster, Random(seed + 2))
        writing = asyncio.ensure_future(writer.run())
        await disturb(cluster, random, steps)
        await cluster.until(lambda: cluster.isr(TOPIC) == set(cluster.broker_ids), 60)
        writer.is_stopping = True
        await asyncio.wait_for(writing, 60)
        await cluster.until(lambda: len({cluster.log_bytes(each, TOPIC) for each in cluster.broker_ids}) == 1, 30)
        log = cluster.log_bytes(1, TOPIC)
        found = stored(log)
        for value, offset in writer.acknowledged.items():
            assert found.get(value) == [offset] or (offset == -1 and len(found.get(value, [])) == 1), (value, offset)
        assert all(len(offsets) == 1 for offsets in found.values())
        assert not cluster.failures
        return writer.acknowledged, log


@pytest.mark.parametrize("seed", range(12))
def test_nothing_acknowledged_is_lost(seed: int) -> None:
    """Crashes, cuts, isolation, lost ZooKeeper sessions and controlled stops, in the order of the seed."""
    acknowledged, _ = run(story(seed))
    assert len(acknowledged) > 10


def test_a_seed_repeats() -> None:
    """The same faults at the same times, and the same bytes in the end."""
    assert run(story(5)) == run(story(5))


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_nothing_acknowledged_is_lost_in_many_seeds() -> None:
    """The same, for a while."""
    for seed in range(100, 400):
        acknowledged, _ = run(story(seed, 8))
        assert len(acknowledged) > 10, seed
