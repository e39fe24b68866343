"""Produce: the checks in their order, duplicates, and when acks=all is answered (docs/produce-checks.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from cluster.protocol.apis import ApiKey
from cluster.protocol.batch import CODEC_ZSTD
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.cluster.broker.scenes import TOPIC, cut_followers, with_topic
from tests.simulation.client import Client, Produced, batch
from tests.simulation.nodes import MemoryCluster
from tests.support.virtual_time import run


def spoiled(records: bytes) -> bytes:
    return records[:-1] + bytes([records[-1] ^ 1])


REFUSED: dict[str, tuple[ErrorCode, str, dict[str, object], Callable[[], bytes | None]]] = {
    "unknown topic": (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "nowhere", {}, lambda: batch(b"v")),
    "unknown partition": (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, TOPIC, {"partition": 7}, lambda: batch(b"v")),
    "acks 2": (ErrorCode.INVALID_REQUIRED_ACKS, TOPIC, {"acks": 2}, lambda: batch(b"v")),
    "no records": (ErrorCode.INVALID_RECORD, TOPIC, {}, lambda: None),
    "empty records": (ErrorCode.INVALID_RECORD, TOPIC, {}, lambda: b""),
    "checksum": (ErrorCode.CORRUPT_MESSAGE, TOPIC, {}, lambda: spoiled(batch(b"v"))),
    "two batches": (ErrorCode.INVALID_RECORD, TOPIC, {}, lambda: batch(b"v") * 2),
    "too large": (ErrorCode.MESSAGE_TOO_LARGE, TOPIC, {}, lambda: batch(b"v" * 2_000_000)),
    "old zstd": (
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, TOPIC, {"version": 6}, lambda: batch(b"v", codec=CODEC_ZSTD)
    ),
    "transactional batch": (
        ErrorCode.INVALID_TXN_STATE, TOPIC, {}, lambda: batch(b"v", producer_id=1, base_sequence=0, transactional=True)
    ),
    "sequence without state": (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, TOPIC, {}, lambda: batch(b"v", producer_id=1, base_sequence=5)
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str) -> None:
    """Each check answers with Kafka's code, tells no offset and stores nothing."""
    code, topic, fields, records = REFUSED[case]

    async def check(cluster: MemoryCluster, client: Client) -> None:
        assert await client.produce(topic, records(), **fields) == Produced(code, -1, -1)  # type: ignore[arg-type]
        assert (await client.list_offset(TOPIC, -1))[1] == 0

    with_topic(check)


@pytest.mark.parametrize("version", range(3, 10))
def test_every_version_is_answered(version: int) -> None:
    """Produce 3 to 9: offsets run on."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        assert (await client.produce(TOPIC, batch(b"a", b"b"), version=version)).base_offset == 0
        assert (await client.produce(TOPIC, batch(b"c"), version=version)).base_offset == 2

    with_topic(check)


def test_a_broker_that_does_not_lead_says_so() -> None:
    """NOT_LEADER_OR_FOLLOWER, from a follower and from a broker without the replica."""

    async def check(cluster: MemoryCluster, _client: Client) -> None:
        follower = next(broker for broker in cluster.broker_ids if broker != cluster.leader(TOPIC))
        client = Client(await cluster.connect(follower))
        assert (await client.produce(TOPIC, batch(b"v"))).error is ErrorCode.NOT_LEADER_OR_FOLLOWER

    with_topic(check, brokers=3)


def test_acks_zero_is_not_answered() -> None:
    """The next request's answer is the next frame."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await client.produce(TOPIC, batch(b"v"), acks=0)
        other = Client(await cluster.connect(cluster.leader(TOPIC)))
        assert (await other.list_offset(TOPIC, -1))[1] == 1

    with_topic(check)


def test_acks_zero_that_fails_closes_the_connection() -> None:
    """There is no answer that could carry the error."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        with pytest.raises(ConnectionError):
            await client.produce("nowhere", batch(b"v"), acks=0)

    with_topic(check)


def test_a_duplicate_is_answered_with_its_first_offset() -> None:
    """The last five batches are known; what is older and certain is DUPLICATE_SEQUENCE_NUMBER."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        for sequence in range(7):
            sent = batch(b"%d" % sequence, producer_id=9, base_sequence=sequence)
            assert (await client.produce(TOPIC, sent)).base_offset == sequence
        again = await client.produce(TOPIC, batch(b"4", producer_id=9, base_sequence=4))
        assert (again.error, again.base_offset) == (ErrorCode.NONE, 4)
        below = await client.produce(TOPIC, batch(b"0", producer_id=9, base_sequence=0))
        assert (below.error, below.base_offset) == (ErrorCode.DUPLICATE_SEQUENCE_NUMBER, -1)
        ahead = await client.produce(TOPIC, batch(b"9", producer_id=9, base_sequence=9))
        assert ahead.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert (await client.list_offset(TOPIC, -1))[1] == 7
        counters = cluster.nodes[cluster.leader(TOPIC)].counters
        assert (counters.produce_batches, counters.produce_duplicates) == (7, 2)
        assert counters.produce_retries == 2

    with_topic(check)


def test_acks_all_waits_for_the_followers() -> None:
    """Without them it is REQUEST_TIMED_OUT; acks=1 is answered at once; consumers see neither."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        cut_followers(cluster)
        assert (await client.produce(TOPIC, batch(b"a"), timeout_ms=300)).error is ErrorCode.REQUEST_TIMED_OUT
        assert (await client.produce(TOPIC, batch(b"b"), acks=1)).error is ErrorCode.NONE
        assert (await client.fetch(TOPIC, 0)).records == []
        assert (await client.list_offset(TOPIC, -1))[1] == 0

    with_topic(check, brokers=3)


def test_a_duplicate_waits_for_its_original() -> None:
    """Under acks=all a retry is acknowledged only when what it repeats is committed: both kinds of duplicates."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        links = cut_followers(cluster)
        for sequence in range(7):
            sent = batch(b"%d" % sequence, producer_id=9, base_sequence=sequence)
            assert (await client.produce(TOPIC, sent, acks=1)).error is ErrorCode.NONE
        for sequence in (6, 0):
            retry = batch(b"%d" % sequence, producer_id=9, base_sequence=sequence)
            assert (await client.produce(TOPIC, retry, timeout_ms=200)).error is ErrorCode.REQUEST_TIMED_OUT
        for link in links:
            cluster.network.heal(*link)
        assert (await client.produce(TOPIC, batch(b"6", producer_id=9, base_sequence=6))).base_offset == 6
        below = await client.produce(TOPIC, batch(b"0", producer_id=9, base_sequence=0))
        assert below.error is ErrorCode.DUPLICATE_SEQUENCE_NUMBER

    with_topic(check, brokers=3)


def test_not_enough_replicas_before_the_append() -> None:
    """acks=all below min.insync.replicas is refused and stores nothing; acks=1 is not its business."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        leader = cluster.leader(TOPIC)
        for broker_id in cluster.broker_ids:
            if broker_id != leader:
                await cluster.crash(broker_id)
        await cluster.until(lambda: cluster.isr(TOPIC) == {leader})
        assert (await client.produce(TOPIC, batch(b"a"))).error is ErrorCode.NOT_ENOUGH_REPLICAS
        assert (await client.produce(TOPIC, batch(b"b"), acks=1)).base_offset == 0
        assert (await client.fetch(TOPIC, 0)).records == [], "the watermark stands still (KAFKA-15583)"

    with_topic(check, brokers=3)


def test_a_waiting_produce_outlives_an_epoch_in_which_its_leader_stays() -> None:
    """The death of a replica bumps the epoch; the watermark answers then, as for Kafka's ``DelayedProduce``."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        leader = cluster.leader(TOPIC)
        controller = next(broker for broker, node in cluster.nodes.items() if node.control.is_controller)
        lagging = next(broker for broker in cluster.broker_ids if broker not in (leader, controller))
        cluster.network.cut(f"b{lagging}", f"b{leader}")
        waiting = asyncio.ensure_future(client.produce(TOPIC, batch(b"a"), timeout_ms=60_000))
        await asyncio.sleep(1)
        await cluster.crash(lagging)
        epoch = cluster.nodes[leader].replicas.partitions[TOPIC, 0].leader_epoch
        assert (await waiting).error is ErrorCode.NONE
        assert cluster.leader(TOPIC) == leader
        assert cluster.nodes[leader].replicas.partitions[TOPIC, 0].leader_epoch > epoch

    with_topic(check, brokers=3)


def test_pipelined_produces_are_appended_in_order() -> None:
    """All are appended at once, and answered in order when they are committed."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        answers = await asyncio.gather(*(client.produce(TOPIC, batch(b"%d" % number)) for number in range(5)))
        assert [answer.base_offset for answer in answers] == list(range(5))

    with_topic(check, brokers=3)


def test_a_request_of_many_partitions_waits_for_all() -> None:
    """One partition that fails is told beside those that succeed."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        request = request_class(ApiKey.PRODUCE)
        data = request.TopicProduceData.PartitionProduceData
        response = await client.send(
            ApiKey.PRODUCE,
            9,
            transactional_id=None,
            acks=-1,
            timeout_ms=1000,
            topic_data=[
                request.TopicProduceData(
                    name=TOPIC, partition_data=[data(index=0, records=batch(b"a")), data(index=9, records=batch(b"b"))]
                )
            ],
        )
        found = [(entry.index, entry.error_code) for entry in response.responses[0].partition_responses]
        assert found == [(0, ErrorCode.NONE), (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]

    with_topic(check, brokers=3)


def test_nothing_is_served_to_clients_before_the_controller_has_spoken() -> None:
    """A broker that knows no metadata yet would tell clients that their topics do not exist: it lets them wait."""

    async def main() -> None:
        async with MemoryCluster(1) as cluster:
            await cluster.create_topic(TOPIC)
            await cluster.crash(1)
            starting = asyncio.ensure_future(cluster.start(1))
            await cluster.until(lambda: 1 in cluster.nodes)
            client = Client(await cluster.connect(1))
            response = await client.send(ApiKey.METADATA, 9, topics=None, allow_auto_topic_creation=False)
            await starting
            assert [topic.name for topic in response.topics] == [TOPIC]

    run(main())
