"""WriteTxnMarkers over the brokers' wire: where markers are written, and what each partition answers."""

from __future__ import annotations

from typing import Any

from cluster.broker.internal_topics import OFFSETS_TOPIC
from cluster.protocol.apis import ApiKey
from cluster.protocol.batch import iter_batches
from cluster.protocol.control_records import ControlRecordType, parse_marker_batch
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.cluster.broker.scenes import TOPIC
from tests.cluster.broker.transactions.scenes import TxnProducer, with_transactions
from tests.simulation.client import Client
from tests.simulation.nodes import MemoryCluster

Codes = dict[tuple[str, int], ErrorCode]


def marker(partitions: dict[str, list[int]], *, commit: bool = True, **fields: int) -> Any:
    marker_class = request_class(ApiKey.WRITE_TXN_MARKERS).WritableTxnMarker
    topics = [
        marker_class.WritableTxnMarkerTopic(name=topic, partition_indexes=numbers)
        for topic, numbers in partitions.items()
    ]
    given = {"producer_id": 7, "producer_epoch": 0, "coordinator_epoch": 3, **fields}
    return marker_class(transaction_result=commit, topics=topics, **given)


async def write(cluster: MemoryCluster, broker_id: int, *markers: Any) -> list[Codes]:
    client = Client(await cluster.connect(broker_id, listener="PEERS"))
    answer = await client.send(ApiKey.WRITE_TXN_MARKERS, 1, markers=[*markers])
    assert [each.producer_id for each in answer.markers] == [each.producer_id for each in markers]
    return [
        {
            (topic.name, each.partition_index): ErrorCode(each.error_code)
            for topic in result.topics
            for each in topic.partitions
        }
        for result in answer.markers
    ]


def stored(cluster: MemoryCluster, broker_id: int, partition: int = 0) -> list[tuple[int, int, bool, int]]:
    """(producer id, its epoch, whether it commits, coordinator epoch) of each marker of a replica."""
    found = []
    data = cluster.log_bytes(broker_id, TOPIC, partition)
    for position, header in iter_batches(data):
        batch = parse_marker_batch(data[position : position + header.size_bytes])
        commits = batch.marker.control_type is ControlRecordType.COMMIT
        found.append((batch.producer_id, batch.producer_epoch, commits, batch.marker.coordinator_epoch))
    return found


def test_a_marker_is_on_every_replica_before_it_is_answered() -> None:
    """Several of one request, to several partitions; each answers for itself."""

    async def check(cluster: MemoryCluster, _producer: TxnProducer) -> None:
        leader = cluster.leader(TOPIC, 0)
        elsewhere = next(number for number in range(3) if cluster.leader(TOPIC, number) != leader)
        wanted = {TOPIC: [0, elsewhere, 9], "nowhere": [0]}
        commits = {
            (TOPIC, 0): ErrorCode.NONE,
            (TOPIC, elsewhere): ErrorCode.NOT_LEADER_OR_FOLLOWER,
            (TOPIC, 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        abort = marker({TOPIC: [0]}, commit=False, producer_id=8, producer_epoch=2)
        assert await write(cluster, leader, marker(wanted), abort) == [commits, {(TOPIC, 0): ErrorCode.NONE}]
        for broker_id in cluster.broker_ids:
            assert stored(cluster, broker_id) == [(7, 0, True, 3), (8, 2, False, 3)]

    with_transactions(check, brokers=3)


def test_who_comes_too_late_is_fenced() -> None:
    """By the producer's epoch, and by the coordinator's; the same marker again does no harm."""

    async def check(cluster: MemoryCluster, _producer: TxnProducer) -> None:
        async def code(**fields: int) -> ErrorCode:
            (codes,) = await write(cluster, 1, marker({TOPIC: [0]}, **fields))
            return codes[TOPIC, 0]

        assert await code(producer_epoch=1) is ErrorCode.NONE
        assert await code(producer_epoch=1) is ErrorCode.NONE
        assert await code(producer_epoch=0) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert await code(producer_epoch=1, coordinator_epoch=2) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
        assert await code(producer_epoch=1, coordinator_epoch=4) is ErrorCode.NONE
        assert await code(producer_id=-1) is ErrorCode.INVALID_REQUEST

    with_transactions(check)


def test_a_request_without_markers() -> None:
    """Is answered at once; so is a marker without partitions."""

    async def check(cluster: MemoryCluster, _producer: TxnProducer) -> None:
        assert await write(cluster, 1) == []
        assert await write(cluster, 1, marker({})) == [{}]

    with_transactions(check)


def test_offsets_that_are_being_read() -> None:
    """A marker is refused until all that is before it is known, and its sender comes again."""

    async def check(cluster: MemoryCluster, _producer: TxnProducer) -> None:
        coordinators = cluster.nodes[1]._coordinators
        assert coordinators is not None
        homes = coordinators.groups.coordinator.homes
        await cluster.until(lambda: 0 in homes and not homes[0].is_loading)
        asked = marker({OFFSETS_TOPIC: [0, 9]})
        homes[0].is_loading = True
        (codes,) = await write(cluster, 1, asked)
        assert codes[OFFSETS_TOPIC, 0] is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        homes[0].is_loading = False
        (codes,) = await write(cluster, 1, asked)
        assert codes[OFFSETS_TOPIC, 0] is ErrorCode.NONE
        assert codes[OFFSETS_TOPIC, 9] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    with_transactions(check)


def test_too_few_replicas() -> None:
    """NOT_ENOUGH_REPLICAS: what one replica alone has can be lost."""

    async def check(cluster: MemoryCluster, _producer: TxnProducer) -> None:
        leader = cluster.leader(TOPIC, 0)
        for broker_id in cluster.broker_ids:
            if broker_id != leader:
                await cluster.crash(broker_id)
        await cluster.until(lambda: cluster.isr(TOPIC) == {leader})
        assert await write(cluster, leader, marker({TOPIC: [0]})) == [{(TOPIC, 0): ErrorCode.NOT_ENOUGH_REPLICAS}]
        assert stored(cluster, leader) == []

    with_transactions(check, brokers=3)
