"""Three real brokers and a real ZooKeeper: real clients write and read, and kill -9 of a leader loses nothing."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import warnings
from collections.abc import Iterator
from itertools import pairwise

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from cluster.protocol.batch import iter_batches
from tests.integration.local_cluster import LocalCluster, eventually

with warnings.catch_warnings():
    # kafka-python reads its schemas in a way that Python 3.11 calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    import kafka.codec

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
RECORDS = 500
QUIET = {"log_level": 2}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(str(tmp_path_factory.mktemp("cluster"))) as running:
        yield running
    assert not any(psutil.pid_exists(child.pid) for child in running.children.values())


def create(cluster: LocalCluster, topic: str, partitions: int = 1, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
    new = NewTopic(topic, partitions, len(cluster.broker_ids), config=config)
    for future in admin.create_topics([new]).values():
        future.result(20)


def leader_and_isr(cluster: LocalCluster, topic: str, partition: int = 0) -> tuple[int, set[int]]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
    found = admin.list_topics(topic, timeout=10).topics[topic].partitions.get(partition)
    return (-1, set()) if found is None else (found.leader, set(found.isrs))


def read_all(cluster: LocalCluster, topic: str, count: int, timeout_s: float = 20) -> list[tuple[int, bytes]]:
    """(offset, value) of the first ``count`` records of partition 0, by assignment from offset 0."""
    settings = {"group.id": "g", "enable.auto.commit": False, "auto.offset.reset": "error", **QUIET}
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, **settings})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[tuple[int, bytes]] = []

    def enough() -> bool:
        for message in consumer.consume(1000, 0.2):
            if message.error() is None:
                found.append((message.offset(), message.value()))
            else:
                assert message.error().code() != KafkaError._AUTO_OFFSET_RESET, message.error()
        return len(found) >= count

    try:
        eventually(enough, timeout_s, f"{count} records of {topic}")
    finally:
        consumer.close()
    return found


def log_bytes(cluster: LocalCluster, broker_id: int, topic: str, partition: int = 0) -> bytes:
    paths = sorted(glob.glob(os.path.join(cluster.data(broker_id), f"{topic}-{partition}", "*.log")))
    parts = []
    for path in paths:
        with open(path, "rb") as file:
            parts.append(file.read())
    return b"".join(parts)


def codecs_on_disk(cluster: LocalCluster, topic: str) -> set[int]:
    leader, _ = leader_and_isr(cluster, topic)
    return {header.codec for _, header in iter_batches(log_bytes(cluster, leader, topic))}


class Writer:
    """A confluent producer to partition 0 of a topic, with what was acknowledged at which offset."""

    def __init__(self, cluster: LocalCluster, topic: str, **settings: object) -> None:
        self.topic = topic
        self.sent = 0
        self.acknowledged: dict[bytes, int] = {}
        self.errors: list[object] = []
        # Short timeouts, so that a dead broker is given up quickly.
        base = {"linger.ms": 2, "socket.timeout.ms": 3000, "retry.backoff.ms": 20, "reconnect.backoff.max.ms": 200}
        self._producer = Producer({"bootstrap.servers": cluster.bootstrap, **base, **QUIET, **settings})

    def _delivered(self, error: object, message: object) -> None:
        if error is not None:
            self.errors.append(error)
        else:
            self.acknowledged[message.value()] = message.offset()  # type: ignore[attr-defined]

    def write(self, count: int) -> None:
        for _ in range(count):
            value = b"value %08d " % self.sent + b"x" * 80
            self._producer.produce(self.topic, value, partition=0, on_delivery=self._delivered)
            self.sent += 1
            self._producer.poll(0)

    def flush(self, timeout_s: float = 30) -> None:
        assert self._producer.flush(timeout_s) == 0

    def poll(self) -> None:
        self._producer.poll(0.01)


@pytest.mark.parametrize("codec", CODECS)
def test_confluent_writes_and_reads_every_codec(cluster: LocalCluster, codec: str) -> None:
    """Idempotent, acks=all: every record comes back at its offset, compressed on disk as the client compressed it."""
    topic = f"confluent-{codec}"
    create(cluster, topic)
    writer = Writer(cluster, topic, **{"enable.idempotence": True, "compression.type": codec, "linger.ms": 20})
    writer.write(RECORDS)
    writer.flush()
    assert not writer.errors
    found = read_all(cluster, topic, RECORDS)
    assert {value: offset for offset, value in found} == writer.acknowledged
    assert codecs_on_disk(cluster, topic) == {CODECS[codec]}


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_confluent_writes_with_every_acks(cluster: LocalCluster, acks: str) -> None:
    """acks 0, 1 and all: without faults every record arrives, once."""
    topic = f"acks-{acks}"
    create(cluster, topic)
    writer = Writer(cluster, topic, acks=acks)
    writer.write(RECORDS)
    writer.flush()
    values = [value for _, value in read_all(cluster, topic, RECORDS)]
    assert values == [b"value %08d " % number + b"x" * 80 for number in range(RECORDS)]


def available(codec: str) -> bool:
    check = getattr(kafka.codec, f"has_{codec}", None)
    return codec == "none" or (check is not None and bool(check()))


@pytest.mark.parametrize("codec", CODECS)
def test_kafka_python_writes_and_reads_every_codec(cluster: LocalCluster, codec: str) -> None:
    """kafka-python, idempotent: what it writes it reads, and the broker keeps its codec."""
    if not available(codec):
        pytest.skip(f"kafka-python has no {codec} here")
    topic = f"python-{codec}"
    create(cluster, topic)
    servers = cluster.bootstrap.split(",")
    compression = None if codec == "none" else codec
    producer = kafka.KafkaProducer(
        bootstrap_servers=servers, acks="all", enable_idempotence=True, compression_type=compression, linger_ms=20
    )
    futures = [producer.send(topic, b"value %d" % number, partition=0) for number in range(RECORDS)]
    producer.flush(30)
    offsets = [future.get(10).offset for future in futures]
    producer.close()
    assert offsets == list(range(RECORDS))
    consumer = kafka.KafkaConsumer(bootstrap_servers=servers, enable_auto_commit=False, auto_offset_reset="none")
    assigned = kafka.TopicPartition(topic, 0)
    consumer.assign([assigned])
    assert consumer.beginning_offsets([assigned]) == {assigned: 0}
    assert consumer.end_offsets([assigned]) == {assigned: RECORDS}
    consumer.seek(assigned, 0)
    values: list[bytes] = []

    def enough() -> bool:
        for records in consumer.poll(200).values():
            values.extend(record.value for record in records)
        return len(values) >= RECORDS

    eventually(enough, 20, f"{RECORDS} records of {topic}")
    consumer.close()
    assert values == [b"value %d" % number for number in range(RECORDS)]
    assert codecs_on_disk(cluster, topic) == {CODECS[codec]}


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
@pytest.mark.parametrize("codec", CODECS)
def test_kcat_writes_and_reads_every_codec(cluster: LocalCluster, codec: str) -> None:
    """kcat produces lines and reads them back."""
    topic = f"kcat-{codec}"
    create(cluster, topic)
    lines = "".join(f"value {number}\n" for number in range(RECORDS))
    base = ["kcat", "-b", cluster.bootstrap, "-t", topic, "-p", "0"]
    subprocess.run([*base, "-P", "-z", codec, "-X", "acks=all"], input=lines, text=True, check=True, timeout=30)
    read = subprocess.run(
        [*base, "-C", "-o", "beginning", "-e", "-q"], capture_output=True, text=True, check=True, timeout=30
    )
    assert read.stdout == lines
    assert codecs_on_disk(cluster, topic) == {CODECS[codec]}


def test_an_unknown_topic_is_an_error(cluster: LocalCluster) -> None:
    """auto.create.topics.enable is off in the profile chaos: nothing appears because it was asked for."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
    found = admin.list_topics("never-created", timeout=10).topics["never-created"]
    assert found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_offsets_for_times(cluster: LocalCluster) -> None:
    """ListOffsets finds the first record of a time, and the end."""
    topic = "times"
    create(cluster, topic)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, **QUIET})
    for number in range(10):
        producer.produce(topic, b"v", partition=0, timestamp=1_700_000_000_000 + 1000 * number)
        producer.flush(10)
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g", **QUIET})
    asked = [TopicPartition(topic, 0, 1_700_000_000_000 + 4500)]
    assert consumer.offsets_for_times(asked, timeout=10)[0].offset == 5
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10) == (0, 10)
    consumer.close()


def test_kill_of_the_leader_loses_nothing(cluster: LocalCluster) -> None:
    """kill -9 of the leader under an idempotent acks=all producer: every acknowledged record is there once, at its
    offset; the broker comes back on its own data directory, rejoins the ISR, and all replicas hold the same bytes."""
    topic = "failover"
    create(cluster, topic)
    writer = Writer(cluster, topic, **{"enable.idempotence": True})
    for _ in range(2):
        writer.write(2000)
        eventually(lambda: writer.poll() or len(writer.acknowledged) > writer.sent - 1000, 20, "acknowledgements")
        leader, isr = leader_and_isr(cluster, topic)
        assert isr == set(cluster.broker_ids)
        cluster.kill(leader)
        writer.write(2000)
        writer.flush()
        assert not writer.errors
        assert leader_and_isr(cluster, topic)[0] not in (leader, -1)
        cluster.restart(leader)
        eventually(
            lambda: leader_and_isr(cluster, topic)[1] == set(cluster.broker_ids), 20, "all replicas back in the ISR"
        )
    found = read_all(cluster, topic, writer.sent)
    assert len(found) == writer.sent
    assert {value: offset for offset, value in found} == writer.acknowledged
    eventually(
        lambda: len({log_bytes(cluster, broker_id, topic) for broker_id in cluster.broker_ids}) == 1,
        10,
        "equal bytes on all replicas",
    )
    headers = [header for _, header in iter_batches(log_bytes(cluster, cluster.broker_ids[0], topic))]
    assert all(one.next_offset == other.base_offset for one, other in pairwise(headers))
    assert len({header.leader_epoch for header in headers}) > 1


def test_a_controlled_shutdown_moves_leadership_first(cluster: LocalCluster) -> None:
    """SIGTERM: another broker leads at once, the exit status is 0, and the marker of a clean stop is there."""
    topic = "handover"
    create(cluster, topic)
    writer = Writer(cluster, topic, **{"enable.idempotence": True})
    writer.write(500)
    writer.flush()
    leader, _ = leader_and_isr(cluster, topic)
    assert cluster.terminate(leader) == 0
    assert os.path.exists(os.path.join(cluster.data(leader), ".kafka_cleanshutdown"))
    writer.write(500)
    writer.flush(10)
    assert not writer.errors
    assert leader_and_isr(cluster, topic)[0] not in (leader, -1)
    cluster.restart(leader)
    eventually(lambda: leader in leader_and_isr(cluster, topic)[1], 20, "the broker back in the ISR")
    assert len(read_all(cluster, topic, writer.sent)) == writer.sent
