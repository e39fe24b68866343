"""Our Consumer against our brokers: what librdkafka wrote, where logs begin and end, and what moves while it reads."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing

import confluent_kafka
import pytest

from cluster.client import Admin, Consumer, ConsumerRecord
from cluster.client.consumer.results import LOG_APPEND_TIME, OffsetOutOfRange
from tests.support.kafka_clients import QUIET, TIMEOUT_S, wait_for
from tests.support.native_clients import new_topic, read
from tests.support.up_cluster import UpCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
MEGABYTE = 1_000_000


@pytest.fixture
def consumer(shared_cluster: UpCluster) -> Iterator[Callable[..., Consumer]]:
    """Makes consumers from the beginning, and closes them."""
    made: list[Consumer] = []

    def make(**keys: object) -> Consumer:
        given = {key.replace("_", "."): value for key, value in keys.items()}
        base = {"bootstrap.servers": shared_cluster.bootstrap, "auto.offset.reset": "earliest"}
        made.append(Consumer({**base, **given}))
        return made[-1]

    yield make
    for each in made:
        each.close()


def produce(cluster: UpCluster, topic: str, records: list[dict], codec: str = "none", partition: int = 0) -> None:
    """Idempotently, in several batches."""
    settings = {"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "linger.ms": 5, **QUIET}
    producer = confluent_kafka.Producer({**settings, "compression.type": codec, "message.max.bytes": 2 * MEGABYTE})
    errors: list = []
    for record in records:
        producer.produce(topic, partition=partition, **record, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    assert errors == [None] * len(records)


def values(count: int, start: int = 0) -> list[dict]:
    return [{"value": b"%06d" % number} for number in range(start, start + count)]


@pytest.mark.parametrize("codec", CODECS)
def test_what_librdkafka_wrote(shared_cluster: UpCluster, topic: str, consumer: Callable[..., Consumer], codec: str):
    """Every codec: keys, values and headers, null and empty ones and those of 1 MB too, times and offsets."""
    draw = random.Random(7)
    large = draw.randbytes(MEGABYTE // 2) + b"z" * (MEGABYTE // 2)
    sent = [
        {"key": b"k", "value": b"v", "headers": [("a", b"1"), ("a", None), ("é", b"")], "timestamp": 1_700_000_000_123},
        {"key": None, "value": None, "headers": None, "timestamp": 1_700_000_000_122},
        {"key": b"", "value": b"", "headers": [("", b"x" * 300)], "timestamp": 1},
        *(
            {"key": b"%d" % n, "value": b"x" * n, "headers": [], "timestamp": 1_800_000_000_000 + 7 * n}
            for n in range(300)
        ),
        {"key": b"large", "value": large, "headers": None, "timestamp": 1_900_000_000_000},
        {"key": b"last", "value": b"after", "headers": None, "timestamp": 1_900_000_000_000},
    ]
    produce(shared_cluster, topic, sent, codec)
    reader = consumer(max_poll_records=100)
    reader.assign([(topic, 0)])
    found = read(reader, len(sent))
    assert [
        (each.offset, each.key, each.value, list(each.headers), each.timestamp_ms, each.timestamp_type)
        for each in found
    ] == [
        (offset, each["key"], each["value"], each["headers"] or [], each["timestamp"], 0)
        for offset, each in enumerate(sent)
    ]
    assert {(each.topic, each.partition) for each in found} == {(topic, 0)}
    assert all(each.leader_epoch >= 0 for each in found)
    assert reader.position((topic, 0)) == len(sent)
    assert reader.lag((topic, 0)) == 0
    assert reader.metrics()["records-consumed-total"] == len(sent)


def test_positions(shared_cluster: UpCluster, admin: Admin, consumer: Callable[..., Consumer]):
    """Beginning, end, times, seeks and pauses, over partitions with several leaders."""
    topic = new_topic(admin, 3)
    places = [(topic, partition) for partition in range(3)]
    for partition in range(3):
        produce(
            shared_cluster,
            topic,
            [{"value": b"%d" % n, "timestamp": 1000 * n + 1000} for n in range(10)],
            partition=partition,
        )
    reader = consumer(max_poll_records=4)
    assert [each.partition for each in reader.partitions_for(topic)] == [0, 1, 2]
    assert reader.partitions_for("there-is-no-such-topic", 5) == []
    assert reader.beginning_offsets(places) == dict.fromkeys(places, 0)
    assert reader.end_offsets(places) == dict.fromkeys(places, 10)
    found = reader.offsets_for_times({places[0]: 2500, places[1]: 0, places[2]: 10_001})
    assert found[places[0]] is not None and found[places[0]][:2] == (2, 3000)
    assert found[places[1]] is not None and found[places[1]][:2] == (0, 1000)
    assert found[places[2]] is None
    reader.assign(places)
    reader.pause(places[1:])
    assert {each.partition for each in read(reader, 10)} == {0}
    reader.seek(places[0], 7)
    reader.seek_to_end([places[1]])
    reader.resume(places[1:])
    again = read(reader, 13)
    assert sorted((each.partition, each.offset) for each in again) == [
        *((0, offset) for offset in (7, 8, 9)),
        *((2, offset) for offset in range(10)),
    ]
    assert [reader.position(place) for place in places] == [10, 10, 10]
    reader.seek_to_beginning([places[1]])
    assert reader.position(places[1]) == 0
    assert reader.poll(0) is not None


def test_the_broker_stamps_records(shared_cluster: UpCluster, admin: Admin, consumer: Callable[..., Consumer]):
    """With message.timestamp.type=LogAppendTime every record has the broker's time, and says so."""
    topic = new_topic(admin, 1, message_timestamp_type="LogAppendTime")
    produce(shared_cluster, topic, [{"value": b"x", "timestamp": 1} for _ in range(3)])
    reader = consumer()
    reader.assign([(topic, 0)])
    assert all(
        each.timestamp_type == LOG_APPEND_TIME and each.timestamp_ms > 1_700_000_000_000 for each in read(reader, 3)
    )


@pytest.mark.parametrize(("policy", "begins"), [("earliest", 30), ("latest", 50), ("none", None)])
def test_the_log_begins_later(
    shared_cluster: UpCluster,
    admin: Admin,
    topic: str,
    consumer: Callable[..., Consumer],
    policy: str,
    begins: int | None,
):
    """A position that DeleteRecords took away goes where auto.offset.reset says; with none, nothing moves."""
    produce(shared_cluster, topic, values(50))
    place = (topic, 0)
    assert admin.delete_records({place: 30}) == {place: 30}
    reader = consumer(auto_offset_reset=policy)
    reader.assign([place])
    reader.seek(place, 10)
    if begins is None:
        for _ in range(2):
            with pytest.raises(OffsetOutOfRange, match=f"{topic}-0 at 10") as raised:
                wait_for(lambda: reader.poll(1), "an error")
            assert raised.value.positions == {place: 10}
            assert reader.position(place) == 10
        reader.seek_to_beginning()
        begins = 30
    wait_for(lambda: reader.poll(0) is not None and reader.position(place) >= begins, "the reset")
    produce(shared_cluster, topic, values(5, 50))
    found = read(reader, 55 - begins)
    assert [each.offset for each in found] == list(range(begins, 55))


def test_a_partition_moves_while_it_is_read(
    shared_cluster: UpCluster, admin: Admin, topic: str, consumer: Callable[..., Consumer]
):
    """A reassignment to other leaders in mid-read: every record once, in order."""
    place = (topic, 0)
    reader = consumer(max_poll_records=50, fetch_max_wait_ms=100)
    reader.assign([place])
    found: list[ConsumerRecord] = []
    leaders = set()
    for turn in range(3):
        described = admin.describe_topics([topic])[topic].partitions[0]
        leaders.add(described.leader)
        produce(shared_cluster, topic, values(100, 200 * turn))
        found += read(reader, 50)
        replicas = [*described.replicas[1:], described.replicas[0]]
        admin.alter_partition_reassignments({place: replicas})
        wait_for(lambda: not admin.list_partition_reassignments(), "the reassignment")
        admin.elect_leaders(partitions=[place])
        produce(shared_cluster, topic, values(100, 200 * turn + 100))
    found += read(reader, 600 - len(found))
    assert [(each.offset, each.value) for each in found] == [(n, b"%06d" % n) for n in range(600)]
    assert len(leaders) == 3


def test_small_fetches(shared_cluster: UpCluster, topic: str, consumer: Callable[..., Consumer]):
    """Limits below the size of a batch slow down, and lose nothing."""
    produce(shared_cluster, topic, [{"value": b"%d" % n + b"x" * 3000} for n in range(40)])
    reader = consumer(
        max_partition_fetch_bytes=100, fetch_max_bytes=1, max_poll_records=3, isolation_level="read_committed"
    )
    reader.assign([(topic, 0)])
    assert [each.offset for each in read(reader, 40)] == list(range(40))


def test_closing(consumer: Callable[..., Consumer]):
    """A closed consumer says so; closing twice is fine."""
    with closing(consumer()) as reader:
        pass
    with pytest.raises(RuntimeError, match="already been closed"):
        reader.poll(0)
