"""Defects of what is written and read in transactions, on whole brokers: the wrong answer, and that it was noted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from cluster.protocol import fetch
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from cluster.seams.memory_storage import MemoryStorage
from tests.cluster.broker.scenes import TOPIC
from tests.cluster.broker.transactions.scenes import TxnProducer, is_over, read_committed, with_transactions
from tests.cluster.defects.journal import fired, planted
from tests.simulation.client import Client
from tests.simulation.nodes import MemoryCluster

ALL = [(TOPIC, number) for number in range(3)]
Scene = Callable[[MemoryCluster, TxnProducer], Awaitable[None]]


def with_defect(check: Scene, name: str = "") -> list[tuple[object, ...]]:
    """Run it on brokers with the defect, or without one; what was noted: the defect, partition and offset."""
    storage = MemoryStorage()
    with_transactions(check, rules=planted(storage, *[name] * bool(name)))
    return [(line["defect"], line["partition"], line["offset"]) for line in fired(storage)]


async def ended(cluster: MemoryCluster, producer: TxnProducer, *, commit: bool) -> None:
    """A transaction with a record in partition 0 that is over."""
    await producer.begin()
    await producer.add(ALL)
    assert (await producer.write(b"a")).error is ErrorCode.NONE
    assert await producer.end(commit=commit) is ErrorCode.NONE
    await cluster.until(lambda: is_over(cluster))


async def listed_end(cluster: MemoryCluster, isolation: int) -> int:
    """The end of partition 0 that ListOffsets tells."""
    request = request_class(ApiKey.LIST_OFFSETS)
    topic_class = request.ListOffsetsTopic
    asked = topic_class.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-1)
    client = Client(await cluster.connect(cluster.leader(TOPIC)))
    topics = [topic_class(name=TOPIC, partitions=[asked])]
    answer = await client.send(ApiKey.LIST_OFFSETS, 6, replica_id=-1, isolation_level=isolation, topics=topics)
    return int(answer.topics[0].partitions[0].offset)


@pytest.mark.parametrize(("name", "error"), [("", ErrorCode.INVALID_TXN_STATE), ("take-what-comes-late", 0)])
def test_take_what_comes_late_opens_another_transaction(name: str, error: int) -> None:
    """A record after the marker of its transaction is stored; what is in order is no firing."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await ended(cluster, producer, commit=True)
        assert (await producer.write(b"late")).error == error
        assert await read_committed(cluster) == [b"a"]

    assert with_defect(check, name) == ([(name, 0, 2)] if name else [])


@pytest.mark.parametrize(("name", "error"), [("", ErrorCode.INVALID_PRODUCER_EPOCH), ("take-fenced-producers", 0)])
def test_take_fenced_producers_lets_a_zombie_write(name: str, error: int) -> None:
    """A record of an epoch that is over is stored; those of the epoch that counts are no firing."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await ended(cluster, producer, commit=True)
        other = TxnProducer(cluster)
        await ended(cluster, other, commit=True)
        assert (await producer.write(b"zombie")).error == error

    assert with_defect(check, name) == ([(name, 0, 4)] if name else [])


@pytest.mark.parametrize(("name", "read"), [("", []), ("read-undecided", [b"a"])])
def test_read_undecided_shows_what_is_open(name: str, read: list[bytes]) -> None:
    """Once for each offset from which on nothing is decided; a reader of everything is no firing."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        await producer.add(ALL)
        await producer.write(b"a")
        assert await read_committed(cluster, isolation=0) == [b"a"]
        for _ in range(2):
            assert await read_committed(cluster) == read

    assert with_defect(check, name) == ([(name, 0, 0)] if name else [])


@pytest.mark.parametrize(("name", "read"), [("", []), ("name-no-aborted", [b"a"])])
def test_name_no_aborted_shows_what_was_aborted(name: str, read: list[bytes]) -> None:
    """A reader that is not told leaves nothing out; where nothing was aborted nothing is noted."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await ended(cluster, producer, commit=False)
        assert await read_committed(cluster) == read
        assert await read_committed(cluster, 1) == []

    assert with_defect(check, name) == ([(name, 0, 0)] if name else [])


@pytest.mark.parametrize(("name", "ends"), [("", (0, 1)), ("end-at-the-watermark", (1, 1)), ("end-one-later", (1, 2))])
def test_ends_that_are_told(name: str, ends: tuple[int, int]) -> None:
    """To readers of committed records the offset from which on nothing is decided, to others what is replicated."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await producer.begin()
        await producer.add(ALL)
        await producer.write(b"a")
        assert (await listed_end(cluster, 1), await listed_end(cluster, 0)) == ends

    wanted = {"end-at-the-watermark": [(name, 0, 0)], "end-one-later": [(name, 0, 1), (name, 0, 2)]}
    assert with_defect(check, name) == wanted.get(name, [])


@pytest.mark.parametrize(("name", "error"), [("", 0), ("refuse-above-the-watermark", ErrorCode.OFFSET_OUT_OF_RANGE)])
def test_refuse_above_the_watermark(name: str, error: int) -> None:
    """A position that the log has and that is not known to be replicated is out of range; the watermark is not."""

    async def check(cluster: MemoryCluster, producer: TxnProducer) -> None:
        await ended(cluster, producer, commit=True)
        replica = cluster.nodes[1].replicas.find(TOPIC, 0)
        assert replica.leader is not None
        # as of a new leader, whose watermark lags behind what its predecessor has shown
        replica.leader.high_watermark -= 1
        assert [await fetch_error(cluster, offset) for offset in (1, 2)] == [0, error]

    assert with_defect(check, name) == ([(name, 0, 2)] if name else [])


async def fetch_error(cluster: MemoryCluster, offset: int) -> int:
    connection = await cluster.connect(cluster.leader(TOPIC))
    wanted = fetch.FetchPartition(TOPIC, 0, -1, offset, -1, -1, 1 << 20)
    asked = fetch.FetchRequest(-1, 0, 0, 1 << 20, 0, 0, -1, [wanted])
    frame = await connection.send_raw(fetch.build_request(12, connection.next_correlation_id(), "client", asked))
    (found,) = fetch.parse_response(frame, 12).partitions
    return int(found.error_code)
