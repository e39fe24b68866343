"""A disk that fills up under load, and is freed again: nothing acknowledged is lost, and every partition is whole."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration.local_cluster import LocalCluster, eventually
from tests.support.numbered import read_numbers
from tests.support.require import require
from tests.support.small_disk import SIZE, used_bytes

PARTITIONS = 6
TOPIC = "t"
#: What the disk still takes when it is made so small.
LEFT_BYTES = 100_000

pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(240)]


class Writer:
    """Writes to all partitions in turn until it is told to end; what was acknowledged, by partition, in order, and what
    has failed: it may be stored nevertheless.

    If sequences are lost with the records of a partition, a producer with idempotence ends, so there may be none.
    """

    def __init__(self, bootstrap: str, *, is_idempotent: bool = True) -> None:
        self._is_idempotent = is_idempotent
        self.acknowledged: dict[int, list[int]] = defaultdict(list)
        self.failed: dict[int, dict[int, str]] = defaultdict(dict)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._write, args=(bootstrap,))

    @contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._ending.set()
            self._thread.join(60)
        assert not self._thread.is_alive(), "it did not come to its end"

    def count(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def _write(self, bootstrap: str) -> None:
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": self._is_idempotent,
                "acks": "all",
                "linger.ms": 5,
                "queue.buffering.max.ms": 5,
                # what waited for a leader fits into small segments
                "batch.size": 16_384,
            }
        )
        value = 0
        while not self._ending.wait(0.002):
            for partition in range(PARTITIONS):
                self._send(producer, partition, value)
            value += 1
            producer.poll(0)
        producer.flush(40)

    def _send(self, producer: Producer, partition: int, value: int) -> None:
        def delivered(error: object, _message: object) -> None:
            if error is None:
                self.acknowledged[partition].append(value)
            else:
                self.failed[partition][value] = str(error)

        producer.produce(TOPIC, b"%08d" % value + b"." * 500, partition=partition, on_delivery=delivered)


def leaders_and_in_sync(admin: AdminClient) -> dict[int, tuple[int, int]]:
    """The leader of each partition, and how many replicas are in sync."""
    known = admin.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions
    return {number: (each.leader, len(each.isrs)) for number, each in known.items()}


def shrink(cluster: LocalCluster, broker_id: int) -> None:
    """Its disk has little room left."""
    size = used_bytes(Path(cluster.data(broker_id))) + LEFT_BYTES
    (Path(cluster.node(broker_id)) / SIZE).write_text(str(size), encoding="ascii")


def test_a_disk_that_fills_up_and_is_freed_loses_nothing(tmp_path: Path) -> None:
    """First a leader's disk is full: its broker ends, and again when it is started, until there is room. The others
    lead on. Afterwards everybody is back in sync, and each value that was acknowledged is there once, in order."""
    require("java")
    with LocalCluster(str(tmp_path), 3, target="tests.support.small_disk:serve") as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(20)
        writer = Writer(cluster.bootstrap)
        with writer.running():
            eventually(lambda: writer.count() > 500, 30, "the load runs")
            for broker_id in (1, 2):
                fill_and_free(cluster, broker_id, writer)
                whole = eventually(
                    lambda: (found := leaders_and_in_sync(admin)) and {n for _, n in found.values()} == {3} and found,
                    60,
                    "every partition has all of its replicas in sync",
                )
                assert {leader for leader, _ in whole.values()} <= {1, 2, 3}
            before = writer.count()
            eventually(lambda: writer.count() > before + 500, 30, "the load continues")
        for partition in range(PARTITIONS):
            assert read_numbers(cluster.bootstrap, TOPIC, partition) == writer.acknowledged[partition]


def fill_and_free(cluster: LocalCluster, broker_id: int, writer: Writer) -> None:
    """Its disk fills up; twice it is started in vain; then there is room again."""
    shrink(cluster, broker_id)
    message = cluster.children[broker_id].wait_message(60)
    assert message["event"] == "failed" and "No space left on device" in message["error"]
    assert cluster.children[broker_id].wait(20) == 1
    for _ in range(2):
        before = writer.count()
        eventually(lambda before=before: writer.count() > before + 200, 30, "the others take the load")  # type: ignore[misc]
        cluster.start_in_vain(broker_id)
    (Path(cluster.node(broker_id)) / SIZE).unlink()
    cluster.restart(broker_id)
