"""Producer ids that are made up: each would be remembered for a day (M6)."""

from __future__ import annotations

import asyncio

import pytest

from cluster.broker.server import ClientConnection
from cluster.protocol.errors import ErrorCode
from cluster.protocol.records import NewRecord, build_batch
from tests.cluster.broker.scenes import TOPIC, with_topic
from tests.simulation.client import Client, batch
from tests.simulation.nodes import MemoryCluster

MOST = 5
TOTAL = 5 * MOST
#: What one host may have of a room of 16.
SHARE = 14


def test_a_partition_remembers_a_bounded_number_of_producers() -> None:
    """One more is refused with an error that may be tried again, and nothing of it is stored; the others go on, also
    on a new leader's copy of the log, and a batch without a producer id is none of them."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        log = cluster.nodes[cluster.leader(TOPIC)].replicas.partitions[TOPIC, 0].log

        async def code(producer_id: int, base_sequence: int) -> int:
            records = batch(b"a", producer_id=producer_id, base_sequence=base_sequence)
            return (await client.produce(TOPIC, records)).error

        for producer_id in range(MOST):
            assert await code(producer_id, 0) == ErrorCode.NONE
        for producer_id in range(MOST, 10 * MOST):
            assert await code(producer_id, 0) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert ErrorCode.THROTTLING_QUOTA_EXCEEDED.retriable
        assert (log.log_end_offset, len(log.producers)) == (MOST, MOST)
        for producer_id in range(MOST):
            assert await code(producer_id, 1) == ErrorCode.NONE
        assert await code(-1, -1) == ErrorCode.NONE

    with_topic(check, gapless_max_producers=str(MOST))


def test_a_broker_remembers_a_bounded_number_of_producers() -> None:
    """Those of all its partitions together, by default five times as many as one partition's. New ids that go from
    partition to partition are refused then, and those that are known go on."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await cluster.create_topic("wide", 2 * MOST)

        async def code(producer_id: int, partition: int, base_sequence: int = 0) -> int:
            records = batch(b"a", producer_id=producer_id, base_sequence=base_sequence)
            return (await client.produce("wide", records, partition=partition)).error

        codes = [await code(producer_id, number) for number in range(2 * MOST) for producer_id in range(MOST - 1)]
        assert codes == [ErrorCode.NONE] * TOTAL + [ErrorCode.THROTTLING_QUOTA_EXCEEDED] * (len(codes) - TOTAL)
        logs = [cluster.nodes[1].replicas.partitions["wide", number].log for number in range(2 * MOST)]
        assert sum(len(log.producers) for log in logs) == TOTAL
        assert await code(0, 0, 1) == ErrorCode.NONE

    with_topic(check, gapless_max_producers=str(MOST))
    with_topic(check, gapless_max_producers_total=str(TOTAL))


def test_a_broker_knows_from_which_host_a_producer_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of what is examined elsewhere: one host has a share of the room alone (``test_producer_quota``)."""
    monkeypatch.setattr(ClientConnection, "ip", "10.0.0.9")

    async def check(cluster: MemoryCluster, client: Client) -> None:
        log = cluster.nodes[1].replicas.partitions[TOPIC, 0].log
        large = build_batch([NewRecord(1, None, b"v")] * 20_000, producer_id=2, producer_epoch=0, base_sequence=0)
        for records in (batch(b"a", producer_id=1, base_sequence=0), large, batch(b"plain")):
            assert (await client.produce(TOPIC, records)).error is ErrorCode.NONE
        assert [*log.producers.hosts.counts.items()] == [("10.0.0.9", 2)]

    with_topic(check)


def test_one_host_does_not_take_all_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """With made-up producers: those of another host still find some."""

    async def check(_cluster: MemoryCluster, client: Client) -> None:
        monkeypatch.setattr(ClientConnection, "ip", "10.0.0.9")

        async def code(producer_id: int) -> ErrorCode:
            return (await client.produce(TOPIC, batch(b"a", producer_id=producer_id, base_sequence=0))).error

        codes = [await code(producer_id) for producer_id in range(16)]
        assert codes == [ErrorCode.NONE] * SHARE + [ErrorCode.THROTTLING_QUOTA_EXCEEDED] * 2
        monkeypatch.setattr(ClientConnection, "ip", "10.0.0.10")
        assert await code(16) is ErrorCode.NONE

    with_topic(check, gapless_max_producers="16")
    with_topic(check, gapless_max_producers_total="16")


def test_producers_that_are_gone_are_forgotten() -> None:
    """By the broker's own timer, after producer.id.expiration.ms: then there is room for others. One that goes on is
    remembered."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        log = cluster.nodes[1].replicas.partitions[TOPIC, 0].log
        for producer_id in range(MOST):
            assert (await client.produce(TOPIC, batch(b"a", producer_id=producer_id, base_sequence=0))).error == 0
        for sequence in range(1, 12):
            assert len(log.producers) == MOST or sequence > 4
            await asyncio.sleep(1)
            assert (await client.produce(TOPIC, batch(b"a", producer_id=0, base_sequence=sequence))).error == 0
        assert [entry.producer_id for entry in log.producers] == [0]
        assert (await client.produce(TOPIC, batch(b"a", producer_id=7, base_sequence=0))).error == ErrorCode.NONE

    with_topic(
        check,
        gapless_max_producers=str(MOST),
        producer_id_expiration_ms="5000",
        producer_id_expiration_check_interval_ms="1000",
    )
