"""Fetch: what is read, how long it waits, and who may read what (Kafka's Partition)."""

from __future__ import annotations

import asyncio
from unittest import mock

import pytest

from cluster.broker.replicas.fetcher import broker_epoch_in, client_id
from cluster.log.errors import StorageFailed
from cluster.protocol import fetch
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from tests.cluster.broker.scenes import TOPIC, client_of_leader, cut_followers, with_topic
from tests.simulation.client import Client, batch
from tests.simulation.nodes import MemoryCluster


async def fill(client: Client, count: int = 5) -> None:
    for number in range(count):
        assert (await client.produce(TOPIC, batch(b"value %d" % number))).error is ErrorCode.NONE


def test_reading_from_the_middle() -> None:
    """From the batch that holds the offset, whole batches up to the watermark."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await client.produce(TOPIC, batch(b"a", b"b", b"c"))
        await client.produce(TOPIC, batch(b"d"))
        found = await client.fetch(TOPIC, 1)
        assert found.records == [(1, b"b"), (2, b"c"), (3, b"d")]
        assert found.high_watermark == 4

    with_topic(check)


@pytest.mark.parametrize("version", range(4, 13))
def test_every_version_is_answered(version: int) -> None:
    """Fetch 4 to 12 return the records in the form of their version."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await fill(client, 2)
        assert (await client.fetch(TOPIC, 0, version=version)).values == [b"value 0", b"value 1"]

    with_topic(check)


@pytest.mark.parametrize(
    ("version", "code"), [(5, ErrorCode.NOT_LEADER_OR_FOLLOWER), (6, ErrorCode.KAFKA_STORAGE_ERROR)]
)
def test_a_failed_disk_is_told_in_words_that_the_client_knows(version: int, code: ErrorCode) -> None:
    """KAFKA_STORAGE_ERROR from version 6 on; before it the client is sent to look for another leader."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await fill(client, 1)
        log = cluster.nodes[1].replicas.partitions[TOPIC, 0].log
        with mock.patch.object(log, "read", side_effect=StorageFailed("the disk is gone")):
            assert (await client.fetch(TOPIC, 0, version=version)).error is code

    with_topic(check)


def test_sizes_are_soft() -> None:
    """The first batch comes whole however small the limit; no more than fit come with it."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await fill(client)
        size = len(batch(b"value 0"))
        assert len((await client.fetch(TOPIC, 0, max_bytes=1)).values) == 1
        assert len((await client.fetch(TOPIC, 0, partition_max_bytes=1)).values) == 1
        assert len((await client.fetch(TOPIC, 0, partition_max_bytes=3 * size)).values) == 3
        assert len((await client.fetch(TOPIC, 0, max_bytes=2 * size)).values) == 2

    with_topic(check)


def test_offsets_out_of_range() -> None:
    """Below the start or beyond the end is an error; between watermark and end it is a wait (KAFKA-19902)."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await fill(client, 2)
        assert (await client.fetch(TOPIC, 3)).error is ErrorCode.OFFSET_OUT_OF_RANGE
        assert (await client.fetch(TOPIC, -1)).error is ErrorCode.OFFSET_OUT_OF_RANGE
        cut_followers(cluster)
        assert (await client.produce(TOPIC, batch(b"hidden"), acks=1)).base_offset == 2
        for offset in (2, 3):
            found = await client.fetch(TOPIC, offset)
            assert (found.error, found.records, found.high_watermark) == (ErrorCode.NONE, [], 2)

    with_topic(check, brokers=3)


def test_a_fetch_waits_for_a_commit() -> None:
    """It is woken by the watermark, not by the append; else it ends empty after its time."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        loop = asyncio.get_running_loop()
        reader = await client_of_leader(cluster)
        began = loop.time()
        assert (await reader.fetch(TOPIC, 0, max_wait_ms=400)).records == []
        assert 0.4 <= loop.time() - began < 0.5
        waiting = asyncio.ensure_future(reader.fetch(TOPIC, 0, max_wait_ms=5000))
        await asyncio.sleep(0.1)
        began = loop.time()
        await client.produce(TOPIC, batch(b"a"))
        assert (await waiting).values == [b"a"]
        assert loop.time() - began < 0.05

    with_topic(check, brokers=3)


def test_min_bytes_are_waited_for() -> None:
    """Two small batches together are enough, one is not."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        reader = await client_of_leader(cluster)
        size = len(batch(b"a"))
        waiting = asyncio.ensure_future(reader.fetch(TOPIC, 0, max_wait_ms=5000, min_bytes=2 * size))
        await client.produce(TOPIC, batch(b"a"))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await client.produce(TOPIC, batch(b"b"))
        assert (await waiting).values == [b"a", b"b"]

    with_topic(check)


def test_bytes_of_a_batch_that_does_not_fit_count() -> None:
    """Batches go whole, so their sum may stay below ``min_bytes`` for good while more is there than may be returned.
    What may be read counts, by places in the file (Kafka's DelayedFetch)."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        loop = asyncio.get_running_loop()
        size = len(batch(b"value 0"))
        sizes = {"max_wait_ms": 9000, "min_bytes": size * 5 // 2, "partition_max_bytes": size * 5 // 2}
        reader = await client_of_leader(cluster)
        waiting = asyncio.ensure_future(reader.fetch(TOPIC, 0, **sizes))
        await fill(client, 2)
        await asyncio.sleep(0.1)
        assert not waiting.done()
        began = loop.time()
        await fill(client, 1)
        assert (await waiting).values == [b"value 0", b"value 1"]
        assert (await reader.fetch(TOPIC, 0, **sizes)).values == [b"value 0", b"value 1"]
        assert loop.time() - began < 1

    with_topic(check)


def test_bytes_behind_the_watermark_do_not_count() -> None:
    """Only what this reader may read: a batch that is not committed is nothing to a consumer."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        loop = asyncio.get_running_loop()
        size = len(batch(b"value 0"))
        await fill(client, 2)
        cut_followers(cluster)
        await client.produce(TOPIC, batch(b"hidden"), acks=1)
        began = loop.time()
        limit = size * 5 // 2
        found = await client.fetch(TOPIC, 0, max_wait_ms=300, min_bytes=limit, partition_max_bytes=limit)
        assert found.values == [b"value 0", b"value 1"]
        assert loop.time() - began >= 0.3

    with_topic(check, brokers=3)


def test_the_end_of_an_older_segment_is_not_waited_for() -> None:
    """What stands there will never be more (Kafka's DelayedFetch, case F), whether the fetch arrives or waits."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        loop = asyncio.get_running_loop()
        reader = await client_of_leader(cluster)
        waiting = asyncio.ensure_future(reader.fetch(TOPIC, 0, max_wait_ms=9000, min_bytes=100_000))
        await asyncio.sleep(0.1)
        began = loop.time()
        await fill(client, 3)
        assert (await waiting).values == [b"value 0", b"value 1"]
        assert (await reader.fetch(TOPIC, 1, max_wait_ms=9000, min_bytes=100_000)).values == [b"value 1"]
        assert loop.time() - began < 1
        assert (await reader.fetch(TOPIC, 2, max_wait_ms=300, min_bytes=100_000)).values == [b"value 2"]
        assert loop.time() - began >= 0.3

    with_topic(check, log_segment_bytes=str(2 * len(batch(b"value 0"))))


def test_a_request_behind_a_parked_fetch_ends_its_wait() -> None:
    """Answers leave in order, so the parked fetch would hold up what its own client asks next."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        began = asyncio.get_running_loop().time()
        parked = asyncio.ensure_future(client.fetch(TOPIC, 0, max_wait_ms=30_000))
        await asyncio.sleep(0.1)
        assert (await client.list_offset(TOPIC, -1))[1] == 0
        assert (await parked).records == []
        assert asyncio.get_running_loop().time() - began < 1

    with_topic(check)


def test_epochs_are_fenced() -> None:
    """An older current_leader_epoch is FENCED (librdkafka sends 0), a newer one UNKNOWN; -1 is not looked at."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        leader = cluster.leader(TOPIC)
        await cluster.crash(next(broker for broker in cluster.broker_ids if broker != leader))
        await cluster.until(lambda: len(cluster.isr(TOPIC)) == 2)
        client = await client_of_leader(cluster)
        assert (await client.fetch(TOPIC, 0, leader_epoch=0)).error is ErrorCode.FENCED_LEADER_EPOCH
        assert (await client.fetch(TOPIC, 0, leader_epoch=9)).error is ErrorCode.UNKNOWN_LEADER_EPOCH
        assert (await client.fetch(TOPIC, 0, leader_epoch=1)).error is ErrorCode.NONE
        assert (await client.fetch(TOPIC, 0)).error is ErrorCode.NONE
        assert (await client.list_offset(TOPIC, -1, leader_epoch=0))[0] is ErrorCode.FENCED_LEADER_EPOCH

    with_topic(check, brokers=3)


def test_a_consumer_learns_where_its_history_parted() -> None:
    """kafka-python's consumers send their last epoch: beyond its end they get the epoch's end, and no data."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await fill(client, 3)
        found = await client.fetch(TOPIC, 9, last_fetched_epoch=0)
        assert (found.error, found.diverging, found.records) == (ErrorCode.NONE, (0, 3), [])
        assert (await client.fetch(TOPIC, 2, last_fetched_epoch=0)).values == [b"value 2"]
        assert (await client.fetch(TOPIC, 2, last_fetched_epoch=7)).error is ErrorCode.OFFSET_OUT_OF_RANGE

    with_topic(check)


def test_a_client_cannot_pass_for_a_follower() -> None:
    """A follower's fetch is taken as proof of what it holds, so it is believed on the brokers' listener alone."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        cut_followers(cluster)
        await client.produce(TOPIC, batch(b"a"), acks=1)
        leader = cluster.leader(TOPIC)
        for replica_id in cluster.broker_ids:
            if replica_id != leader:
                found = await client.fetch(TOPIC, 1, replica_id=replica_id)
                assert found.error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert (await client.list_offset(TOPIC, -1))[1] == 0
        peer = Client(await cluster.connect(leader, "PEERS"))
        stranger = await peer.fetch(TOPIC, 0, replica_id=77)
        assert stranger.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (await peer.fetch(TOPIC, 0, replica_id=77, leader_epoch=0)).error is ErrorCode.UNKNOWN_LEADER_EPOCH

    with_topic(check, brokers=3)


def test_a_follower_that_knows_no_epoch_is_not_counted_on_for_what_it_lacks() -> None:
    """It holds nothing: its end is where another history had come to, and it begins again as soon as it hears that our
    log begins below. In the ISR until then, it could lead without what was acknowledged (simulation, seed 3351).
    """

    async def check(cluster: MemoryCluster, client: Client) -> None:
        leader = cluster.leader(TOPIC)
        state = cluster.nodes[leader].replicas.partitions[TOPIC, 0].leader
        assert state is not None
        await cluster.until(lambda: all(known.log_end_offset == 0 for known in state.followers.values()))
        cut_followers(cluster)
        await client.produce(TOPIC, batch(b"a"), acks=1)
        follower = next(broker_id for broker_id in cluster.broker_ids if broker_id != leader)
        peer = Client(await cluster.connect(leader, "PEERS"))
        for epoch, counted in ((-1, 0), (0, 1)):
            found = await peer.fetch(TOPIC, 1, replica_id=follower, leader_epoch=0, last_fetched_epoch=epoch)
            assert found.error is ErrorCode.NONE
            assert state.followers[follower].log_end_offset == counted

    with_topic(check, brokers=3)


def test_every_partition_is_echoed() -> None:
    """Clients match answers by position: partitions that fail are among them, in order."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await fill(client, 1)
        wanted = [
            fetch.FetchPartition(topic, number, -1, 0, -1, -1, 1000)
            for topic, number in ((TOPIC, 5), (TOPIC, 0), ("nowhere", 0))
        ]
        request = fetch.FetchRequest(-1, 30_000, 1, 1000, 0, 0, -1, wanted)
        frame = await client.connection.send_raw(
            fetch.build_request(12, client.connection.next_correlation_id(), "c", request)
        )
        found = [(part.topic, part.partition, part.error_code) for part in fetch.parse_response(frame, 12).partitions]
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert found == [(TOPIC, 5, unknown), (TOPIC, 0, ErrorCode.NONE), ("nowhere", 0, unknown)]

    with_topic(check)


def test_sessions_are_declined() -> None:
    """A client that asks for a session gets the id 0; one that claims to have one is told that it is unknown."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        async def ask(session_id: int, session_epoch: int) -> fetch.FetchResponse:
            request = fetch.FetchRequest(-1, 0, 1, 1000, 0, session_id, session_epoch, [])
            data = fetch.build_request(12, client.connection.next_correlation_id(), "c", request)
            return fetch.parse_response(await client.connection.send_raw(data), 12)

        assert (await ask(0, 0)).session_id == 0
        assert (await ask(5, 3)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    with_topic(check)


def test_aborted_transactions_are_told_to_those_who_ask() -> None:
    """An empty list under read_committed, null otherwise; without a transaction all that is committed is stable."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await fill(client, 1)
        for isolation_level, aborted in ((0, None), (1, [])):
            wanted = [fetch.FetchPartition(TOPIC, 0, -1, 0, -1, -1, 1000)]
            request = fetch.FetchRequest(-1, 0, 1, 1000, isolation_level, 0, -1, wanted)
            data = fetch.build_request(12, client.connection.next_correlation_id(), "c", request)
            (found,) = fetch.parse_response(await client.connection.send_raw(data), 12).partitions
            assert (found.aborted, found.last_stable_offset) == (aborted, 1)

    with_topic(check)


def test_more_than_fits_is_not_waited_for() -> None:
    """min_bytes above max_bytes would be reached never."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await fill(client, 3)
        began = asyncio.get_running_loop().time()
        assert len((await client.fetch(TOPIC, 0, max_wait_ms=9000, min_bytes=100_000, max_bytes=50)).values) == 1
        assert asyncio.get_running_loop().time() - began < 1

    with_topic(check)


def test_a_fetchers_client_id_tells_its_life() -> None:
    """KIP-903: the broker epoch travels in the client id; any other client id tells nothing."""
    assert broker_epoch_in(client_id(2, 77)) == 77
    assert broker_epoch_in("rdkafka") == -1
    assert broker_epoch_in(None) == -1
    assert broker_epoch_in(client_id(2**31 - 1, 2**63 - 1)) == 2**63 - 1


def test_a_client_id_that_only_looks_like_a_fetchers_tells_nothing() -> None:
    """No number of more digits than a broker epoch has: Python refuses to read more than 4,300."""
    assert broker_epoch_in("broker-1-epoch-" + "9" * 5000) == -1
    assert broker_epoch_in("broker-1-epoch-\u0661") == -1


def test_metadata_of_a_deleted_topic_is_gone() -> None:
    """DeleteTopics: the replicas stop, the logs go, and the name can be used again."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await fill(client)
        controller = next(broker for broker, node in cluster.nodes.items() if node.control.is_controller)
        admin = Client(await cluster.connect(controller))
        response = await admin.send(ApiKey.DELETE_TOPICS, 5, topic_names=[TOPIC], timeout_ms=5000)
        assert [entry.error_code for entry in response.responses] == [ErrorCode.NONE]
        await cluster.until(lambda: all(not node.replicas.partitions for node in cluster.nodes.values()))
        assert (await client.fetch(TOPIC, 0)).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await cluster.create_topic(TOPIC)
        client = await client_of_leader(cluster)
        assert (await client.produce(TOPIC, batch(b"new"))).base_offset == 0

    with_topic(check, brokers=3)
