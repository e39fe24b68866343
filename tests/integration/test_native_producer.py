"""The native producer against brokers of ours: other clients read what it wrote, and a broken broker loses nothing."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import NewTopic

from bench.cluster import ALONE, create_topics
from cluster.client import Producer
from cluster.client.producer.delivery import InvalidRecord, ProduceError, ProducerClosed, RecordMetadata
from cluster.protocol.errors import ErrorCode
from tests.integration.local_cluster import LocalCluster, eventually
from tests.support.kafka_clients import Confluent, kafka
from tests.support.require import require
from tests.support.up_cluster import ROOT, UpCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LARGE = b"0123456789abcdef" * 65_536
#: Two batches for each codec: (key, value, headers), all there is to be had of null, empty, long and compressible.
RECORDS: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]] = [
    (None, None, []),
    (b"k", None, [("h", b"1"), ("h", None), ("", b"")]),
    (None, b"v", []),
    (b"", b"", []),
    *((b"key %d" % number, b"value %d " % number * 40, [("n", b"%d" % number)]) for number in range(300)),
]
TIMEOUT_S = 30
#: For a broker that is gone: nothing here waits for long.
IMPATIENT = {
    "max.block.ms": 300,
    "request.timeout.ms": 300,
    "delivery.timeout.ms": 600,
    "retry.backoff.ms": 20,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
}


@pytest.fixture(scope="module")
def cluster(shared_cluster: UpCluster) -> UpCluster:
    return shared_cluster


def test_other_clients_read_what_it_wrote(cluster: UpCluster) -> None:
    """Every codec; headers, nulls, empty ones and a value of 1 MB: two clients read the very records."""
    confluent = Confluent(cluster.bootstrap)
    confluent.create("native-codecs", len(CODECS))
    for partition, codec in enumerate(CODECS):
        config = {"bootstrap.servers": cluster.bootstrap, "compression.type": codec, "max.request.size": 2_000_000}
        with Producer({**config, "linger.ms": 20}) as producer:
            futures = [
                producer.send("native-codecs", value, key, partition, headers, 1_000 + index)
                for index, (key, value, headers) in enumerate(RECORDS)
            ]
            futures.append(producer.send("native-codecs", LARGE[:1_040_000], partition=partition))
            producer.flush(TIMEOUT_S)
        assert [each.result(0).offset for each in futures] == list(range(len(RECORDS) + 1))
    wanted = [(key, value, headers) for key, value, headers in RECORDS] + [(None, LARGE[:1_040_000], [])]
    consumer = kafka.KafkaConsumer(bootstrap_servers=cluster.bootstrap, max_partition_fetch_bytes=2_000_000)
    for read in (_read_by_kafka_python(consumer, len(wanted)), _read_by_confluent(cluster.bootstrap, len(wanted))):
        for partition in range(len(CODECS)):
            assert read[partition] == wanted
    consumer.close()


def _read_by_kafka_python(consumer: kafka.KafkaConsumer, count: int) -> dict[int, list]:
    partitions = [kafka.TopicPartition("native-codecs", partition) for partition in range(len(CODECS))]
    consumer.assign(partitions)
    consumer.seek_to_beginning()
    read: dict[int, list] = {partition: [] for partition in range(len(CODECS))}
    deadline = time.monotonic() + TIMEOUT_S
    while min(map(len, read.values())) < count and time.monotonic() < deadline:
        for records in consumer.poll(1_000).values():
            for record in records:
                read[record.partition].append((record.key, record.value, list(record.headers)))
    return read


def _read_by_confluent(bootstrap: str, count: int) -> dict[int, list]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "g", "enable.auto.commit": False, "auto.offset.reset": "error"}
    )
    consumer.assign([confluent_kafka.TopicPartition("native-codecs", each, 0) for each in range(len(CODECS))])
    read: dict[int, list] = {partition: [] for partition in range(len(CODECS))}
    deadline = time.monotonic() + TIMEOUT_S
    while min(map(len, read.values())) < count and time.monotonic() < deadline:
        for message in consumer.consume(500, 1.0):
            assert message.error() is None
            read[message.partition()].append((message.key(), message.value(), message.headers() or []))
    consumer.close()
    return read


def test_refused_records_fail_with_what_is_wrong_with_each(cluster: UpCluster) -> None:
    """Those without key in a compacted topic; the others of their batch, and of no other, hear that they are not
    written, and the producer goes on."""
    topic = NewTopic("native-compacted", 1, 3, config={"cleanup.policy": "compact"})
    create_topics(cluster.bootstrap, [topic])
    # One batch each time: nothing but flush sends it.
    with Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 60_000}) as producer:

        def errors(*keys: bytes | None) -> list[ProduceError | None]:
            futures = [producer.send(topic.topic, b"v", key, partition=0) for key in keys]
            producer.flush(TIMEOUT_S)
            return [future.exception(0) for future in futures]

        first, *refused = errors(b"a", None, None)
        assert type(first) is ProduceError
        assert "not written, for 2 other record(s) of the 3" in str(first)
        assert [type(each) for each in refused] == [InvalidRecord] * 2
        assert all("needs a key" in str(each) for each in refused)
        assert {each.error_code for each in (first, *refused) if each} == {ErrorCode.INVALID_RECORD}
        assert errors(b"b", b"c") == [None, None]
        last = producer.send(topic.topic, b"v", b"d")
        producer.flush(TIMEOUT_S)
        assert last.result(0).offset == 2


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_many_threads_share_a_producer(cluster: UpCluster, acks: str) -> None:
    """Every record once, each thread's in its order, on six partitions with small memory."""
    topic = f"native-threads-{acks}"
    confluent = Confluent(cluster.bootstrap)
    confluent.create(topic, 6)
    with Producer({"bootstrap.servers": cluster.bootstrap}) as producer:
        # With acks 0 nobody would say that a broker does not lead yet.
        for future in [producer.send(topic, b"3 0", partition=partition) for partition in range(6)]:
            future.result(TIMEOUT_S)
    config = {"bootstrap.servers": cluster.bootstrap, "acks": acks, "buffer.memory": 200_000, "linger.ms": 2}
    with Producer(config) as producer:

        def send(thread: int) -> None:
            for number in range(500):
                producer.send(topic, b"%d %d" % (thread, number) + b" " * 200, b"thread %d" % thread)

        threads = [threading.Thread(target=send, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(producer.partitions_for(topic)) == 6
        producer.flush(TIMEOUT_S)
        assert (producer.metrics()["producer-id"] >= 0) is (acks == "all")
    ends: dict[int, int] = {}

    def is_all_there() -> bool:
        ends.update(confluent.offset_of(topic, range(6), "latest"))
        return sum(ends.values()) == 1_506

    eventually(is_all_there, TIMEOUT_S, "all records below the high watermark")
    read = confluent.read(topic, ends)
    order: dict[bytes, list[int]] = {}
    for records in read.values():
        for _offset, _time, value in records:
            thread, number = value.split()
            order.setdefault(thread, []).append(int(number))
    assert order.pop(b"3") == [0] * 6
    assert order == {b"%d" % thread: list(range(500)) for thread in range(3)}


def test_it_writes_to_librdkafkas_own_broker() -> None:
    """A broker that shares no code with ours takes what we write, with its own versions."""
    with _mock_cluster() as bootstrap, Producer({"bootstrap.servers": bootstrap, "linger.ms": 5}) as producer:
        futures = [producer.send("mock", b"v%d" % number, partition=number % 4) for number in range(400)]
        producer.flush(TIMEOUT_S)
        assert [future.result(0).offset for future in futures] == [number // 4 for number in range(400)]


@contextmanager
def _mock_cluster() -> Iterator[str]:
    argv = [sys.executable, "-m", "tests.loadgen.mock_cluster", "1", "mock"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate()


GREENLETS = """
from gevent import monkey
monkey.patch_all()
import gevent, logging, sys, threading, time
from cluster.client import Producer
logging.basicConfig(level=logging.DEBUG, format="%(relativeCreated)d ms: %(message)s")
began = time.monotonic()
with Producer({"bootstrap.servers": sys.argv[1], "linger.ms": 5, "buffer.memory": 100_000}) as producer:
    def send(number):
        return [producer.send("native-greenlets", b"%d %d" % (number, each)) for each in range(200)]
    others = [0]
    def tick():
        while True:
            others[0] += 1
            gevent.sleep(0.001)
    ticking = gevent.spawn(tick)
    jobs = [gevent.spawn(send, number) for number in range(5)]
    futures = [future for job in gevent.joinall(jobs, timeout=30, raise_error=True) for future in job.value]
    offsets = [future.result(30).offset for future in futures]
    ticking.kill()
    # An answer or a wake-up that is overlooked is made good by a timeout, of which none is shorter; the log says which.
    assert time.monotonic() - began < 25, "something was overlooked"
    turns = producer.metrics()["io-turn-total"]
    gevent.sleep(0.3)
    assert producer.metrics()["io-turn-total"] - turns < 10, "the producer's greenlet is busy with nothing"
print(len(futures), sorted(offsets) == list(range(1000)), others[0] > 0, type(threading.current_thread()).__name__)
"""


def test_it_works_under_gevent(cluster: UpCluster, tmp_path: Path) -> None:
    """Patched before it is imported: its thread is a greenlet, which lets the others run and waits without turning."""
    Confluent(cluster.bootstrap).create("native-greenlets", 1)
    script = tmp_path / "greenlets.py"
    script.write_text(GREENLETS)
    done = subprocess.run(
        [sys.executable, "-P", str(script), cluster.bootstrap],
        capture_output=True, text=True, timeout=60, check=False, cwd=ROOT, env={"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout.split()[:3] == ["1000", "True", "True"], done.stderr


def test_a_dead_broker_costs_no_more_than_the_timeouts() -> None:
    """Metadata, flush, delivery and close: each ends in its time, and says why."""
    with Producer({"bootstrap.servers": "127.0.0.1:1", **IMPATIENT}) as producer:
        future, took_s = _timed(lambda: producer.send("t", b"v"))
        text = str(future.exception(0))
        told = re.match(r"REQUEST_TIMED_OUT: Topic t not present in metadata after (\d+) ms\.", text)
        # The wait for metadata begins after the call, and may be a millisecond shorter than max.block.ms.
        assert told is not None and 250 < int(told[1]) < 2000
        assert 0.25 < took_s < 2


def _timed(call: Callable[[], object]) -> tuple:
    began = time.monotonic()
    try:
        result: object = call()
    except Exception as error:
        result = error
    return result, time.monotonic() - began


def test_a_broker_that_dies_and_comes_back(tmp_path: Path) -> None:
    """Nothing lost, nothing twice, all in order, and callbacks in order too; with a broker that is gone for good,
    everything ends in its time."""
    require("java")
    with LocalCluster(str(tmp_path), brokers=1, properties=ALONE) as cluster:
        create_topics(cluster.bootstrap, [NewTopic("t", 1, 1)])
        config = {"bootstrap.servers": cluster.bootstrap, "linger.ms": 1, "batch.size": 2_000, **IMPATIENT}
        with Producer({**config, "delivery.timeout.ms": 60_000, "max.block.ms": 60_000}) as producer:
            told: list[RecordMetadata] = []
            errors: list[ProduceError] = []

            def on_delivery(error: ProduceError | None, metadata: RecordMetadata) -> None:
                errors.extend([error] if error else [])
                told.append(metadata)

            stopped = threading.Event()
            sent = [0]

            def send() -> None:
                while not stopped.wait(0.0005):
                    producer.send("t", b"%d" % sent[0] + b" " * 100, on_delivery=on_delivery)
                    sent[0] += 1

            thread = threading.Thread(target=send)
            thread.start()
            eventually(lambda: len(told) > 300, TIMEOUT_S, "acknowledgements")
            cluster.kill(1)
            before = len(told)
            cluster.restart(1)
            eventually(lambda: len(told) > before + 300, TIMEOUT_S, "acknowledgements after the restart")
            stopped.set()
            thread.join()
            producer.flush(TIMEOUT_S)
            assert errors == []
        numbers = list(range(sent[0]))
        read = Confluent(cluster.bootstrap).read("t", {0: sent[0]})[0]
        assert [int(value.split()[0]) for _offset, _time, value in read] == numbers
        offsets = [each.offset for each in told if each.offset >= 0]
        assert offsets == sorted(offsets)
        _check_the_end(cluster, config)


def _check_the_end(cluster: LocalCluster, config: dict[str, object]) -> None:
    with Producer({**config, "buffer.memory": 6_000}) as producer, Producer({**config, **IMPATIENT}) as waiting:
        for each in (producer, waiting):
            each.send("t", b"known", partition=0).result(TIMEOUT_S)
        cluster.kill(1)
        batches = [producer.send("t", b"x" * 1_900) for _ in range(3)]
        exhausted, took_s = _timed(lambda: producer.send("t", b"x" * 1_900))
        assert "Failed to allocate 2000 bytes" in str(exhausted.exception(0))
        assert 0.25 < took_s < 2
        error, took_s = _timed(lambda: producer.flush(0.1))
        assert isinstance(error, TimeoutError)
        assert took_s < 1
        assert batches[0].exception(5).retriable
        lost = waiting.send("t", b"lost")
        _none, took_s = _timed(lambda: waiting.close(0.2))
        assert isinstance(lost.exception(0), ProducerClosed)
        assert took_s < 2
