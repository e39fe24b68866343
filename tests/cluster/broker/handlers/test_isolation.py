"""Fetch and ListOffsets under read_committed: bounded by the last stable offset, told what was aborted."""

from __future__ import annotations

import asyncio

import pytest

from cluster.broker.replicas.replica import Replica
from cluster.protocol import fetch
from cluster.protocol.apis import ApiKey
from cluster.protocol.batch import parse_header
from cluster.protocol.control_records import ControlRecordType, EndTransactionMarker, build_marker_batch
from cluster.protocol.messages import request_class
from cluster.protocol.records import NewRecord, build_batch
from tests.cluster.broker.scenes import TOPIC, with_topic
from tests.simulation.client import Client
from tests.simulation.nodes import MemoryCluster

UNCOMMITTED, COMMITTED = 0, 1
ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT


class Writer:
    """Writes transactions into the log of the leader: no request may yet."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self.replica: Replica = cluster.nodes[1].replicas.partitions[TOPIC, 0]
        self.sequences: dict[int, int] = {}

    def write(self, producer_id: int, value: bytes, timestamp: int = 1000) -> None:
        sequence = self.sequences.setdefault(producer_id, 0)
        self.sequences[producer_id] += 1
        batch = bytearray(
            build_batch(
                [NewRecord(timestamp, b"key", value)],
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=sequence,
                transactional=True,
            )
        )
        replica = self.replica
        replica.log.append_as_leader(batch, parse_header(batch), replica.leader_epoch, 1000)
        self.commit()

    def end(self, producer_id: int, how: ControlRecordType) -> None:
        marker = EndTransactionMarker(how, 0)
        batch = bytearray(build_marker_batch(marker, producer_id=producer_id, producer_epoch=0, timestamp=1000))
        self.replica.log.append_as_coordinator(batch, self.replica.leader_epoch)
        self.commit()

    def commit(self) -> None:
        leader = self.replica.leader
        assert leader is not None
        if leader.advance(self.replica.log.log_end_offset, 0):
            self.replica.waiters.committed(leader)


async def fetched(
    client: Client, isolation_level: int, offset: int = 0, *, max_wait_ms: int = 0, version: int = 12
) -> fetch.FetchResult:
    wanted = [fetch.FetchPartition(TOPIC, 0, -1, offset, -1, -1, 1 << 20)]
    request = fetch.FetchRequest(-1, max_wait_ms, 1, 1 << 20, isolation_level, 0, -1, wanted)
    data = fetch.build_request(version, client.connection.next_correlation_id(), "c", request)
    (found,) = fetch.parse_response(await client.connection.send_raw(data), version).partitions
    return found


def offsets(found: fetch.FetchResult) -> list[int]:
    """The base offsets of the batches: each has one record."""
    records, at, seen = memoryview(found.records or b""), 0, []
    while at < len(records):
        header = parse_header(records, at)
        seen.append(header.base_offset)
        at += header.size_bytes
    return seen


async def listed(client: Client, isolation_level: int, timestamp: int, version: int = 7) -> int:
    request = request_class(ApiKey.LIST_OFFSETS)
    topic = request.ListOffsetsTopic
    partition = topic.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=timestamp)
    message = request(
        replica_id=-1, isolation_level=isolation_level, topics=[topic(name=TOPIC, partitions=[partition])]
    )
    response = await client.connection.send(message, version)
    return int(response.topics[0].partitions[0].offset)


@pytest.mark.parametrize("version", [4, 11, 12])
def test_what_is_undecided_is_for_those_who_read_everything(version: int) -> None:
    """read_committed ends at the first open transaction; everyone is told the last stable offset."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        writer = Writer(cluster)
        writer.write(1, b"decided")
        writer.end(1, COMMIT)
        writer.write(2, b"open")
        writer.write(1, b"open too")
        for isolation_level, seen in ((UNCOMMITTED, [0, 1, 2, 3]), (COMMITTED, [0, 1])):
            found = await fetched(client, isolation_level, version=version)
            assert offsets(found) == seen
            assert (found.high_watermark, found.last_stable_offset) == (4, 2)
        beyond = await fetched(client, COMMITTED, 3, version=version)
        assert (beyond.error_code, offsets(beyond), beyond.aborted) == (0, [], [])

    with_topic(check)


def test_who_reads_what_is_committed_hears_what_was_aborted() -> None:
    """(producer id, first offset) of each aborted transaction from the fetch offset on; null for read_uncommitted."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        writer = Writer(cluster)
        writer.write(1, b"a")
        writer.write(2, b"b")
        writer.write(1, b"a")
        writer.end(1, ABORT)
        writer.end(2, COMMIT)
        writer.write(2, b"b")
        writer.end(2, ABORT)
        assert (await fetched(client, UNCOMMITTED)).aborted is None
        assert [(await fetched(client, COMMITTED, offset)).aborted for offset in (0, 3, 4, 7)] == [
            [(1, 0), (2, 5)], [(1, 0), (2, 5)], [(2, 5)], [],
        ]  # fmt: skip

    with_topic(check)


def test_a_fetch_waits_for_the_decision() -> None:
    """The marker wakes it, and so answers with the transaction and the marker."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        writer = Writer(cluster)
        writer.write(1, b"a")
        waiting = asyncio.ensure_future(fetched(client, COMMITTED, max_wait_ms=60_000))
        await asyncio.sleep(1)
        assert not waiting.done()
        writer.write(1, b"a")
        await asyncio.sleep(1)
        assert not waiting.done()
        writer.end(1, ABORT)
        found = await waiting
        assert (offsets(found), found.aborted) == ([0, 1, 2], [(1, 0)])

    with_topic(check)


@pytest.mark.parametrize("version", range(1, 8))
def test_offsets_are_listed_up_to_what_is_decided(version: int) -> None:
    """The latest is the last stable offset, and no time is found above it; version 1 has no isolation level."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        writer = Writer(cluster)
        writer.write(1, b"a", 5000)
        writer.end(1, COMMIT)
        writer.write(1, b"a", 6000)
        assert await listed(client, UNCOMMITTED, -1, version) == 3
        assert await listed(client, UNCOMMITTED, 6000, version) == 2
        assert await listed(client, COMMITTED, -1, version) == (2 if version > 1 else 3)
        assert await listed(client, COMMITTED, 6000, version) == (-1 if version > 1 else 2)
        assert await listed(client, COMMITTED, 5000, version) == 0
        assert await listed(client, COMMITTED, -2, version) == 0

    with_topic(check)
