"""Disks that fail under a real broker: no permission, in use, no room. A clear error, and nothing is lost."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from cluster.process.supervisor import Child, Supervisor
from tests.integration.local_cluster import LocalCluster, eventually
from tests.support.numbered import read_numbers
from tests.support.require import require

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    with Supervisor(str(tmp_path)) as running:
        yield running


def start(supervisor: Supervisor, tmp_path: Path, broker_id: int, data: str) -> Child:
    """A broker that finds no ZooKeeper: its directory is looked at before."""
    properties = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "zookeeper.connect": "127.0.0.1:1",
        "zookeeper.connection.timeout.ms": "60000",
        "log.dirs": data,
    }
    node = str(tmp_path / f"node{broker_id}")
    arguments = {"broker_id": broker_id, "properties": properties, "node_directory": node}
    name = f"broker{broker_id}"
    child = supervisor.start_python(name, "cluster.broker.main:serve", arguments, str(tmp_path / f"{name}.out"))
    assert child.wait_message(30)["event"] == "bound"
    return child


def is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def test_two_brokers_on_one_directory(supervisor: Supervisor, tmp_path: Path) -> None:
    """The second says who is in its way and ends; the first goes on, and after its death the directory is free."""
    data = tmp_path / "data"
    first = start(supervisor, tmp_path, 1, str(data))
    eventually(lambda: is_locked(data / ".lock"), 20, "the first broker locks its directory")
    second = start(supervisor, tmp_path, 2, str(data))
    message = second.wait_message(20)
    assert message["event"] == "failed"
    assert f"{data} is in use by another broker" in message["error"] and ".lock" in message["error"]
    assert second.wait(10) == 1
    assert first.is_running() and is_locked(data / ".lock")
    first.kill()
    eventually(lambda: not is_locked(data / ".lock"), 20, "the lock ends with its process")


def test_a_directory_without_permission(supervisor: Supervisor, tmp_path: Path) -> None:
    """One line that names it, and exit status 1. Root may write anywhere but where there is nothing to write to."""
    data = "/proc/gapless"
    if os.geteuid() != 0:
        closed = tmp_path / "closed"
        closed.mkdir(0o500)
        data = str(closed / "data")
    child = start(supervisor, tmp_path, 1, data)
    message = child.wait_message(20)
    assert message["event"] == "failed"
    assert f"cannot use the data directory {data}" in message["error"]
    assert child.wait(10) == 1


def produce(bootstrap: str, first: int, count: int) -> list[int]:
    """Send values one by one until one fails; returns those that were acknowledged."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "retries": 0,
            "message.timeout.ms": 4000,
            "socket.timeout.ms": 2000,
        }
    )
    acknowledged: list[int] = []
    for value in range(first, first + count):
        failures: list[object] = []

        def delivered(error: object, _message: object, failures: list[object] = failures) -> None:
            failures.append(error)

        producer.produce("t", b"%08d" % value + b"." * 1000, partition=0, on_delivery=delivered)
        producer.flush(6)
        if not failures or failures[0] is not None:  # a KafkaError must not be compared with None
            break
        acknowledged.append(value)
    return acknowledged


@pytest.mark.full
def test_a_full_disk_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """The append that finds no room is refused, the broker ends with the disk's error, and on the next start every
    acknowledged value is there, once, in order. The limit is one on file sizes, so that no disk need be filled."""
    require("java")
    with LocalCluster(str(tmp_path), 1, {"min.insync.replicas": "1"}) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic("t", 1, 1)])["t"].result(20)
        acknowledged = produce(cluster.bootstrap, 0, 20)
        assert len(acknowledged) == 20
        child = cluster.children[1]
        log_file = Path(cluster.data(1)) / "t-0" / f"{0:020d}.log"
        limit = log_file.stat().st_size + 5000
        psutil.Process(child.pid).rlimit(psutil.RLIMIT_FSIZE, (limit, limit))
        more = produce(cluster.bootstrap, 20, 20)
        assert 0 < len(more) < 10
        message = child.wait_message(20)
        assert message["event"] == "failed" and os.strerror(errno.EFBIG) in message["error"]
        assert str(log_file) in message["error"]
        assert child.wait(20) == 1
        cluster.restart(1)
        again = produce(cluster.bootstrap, 100, 5)
        assert len(again) == 5
        values = read_numbers(cluster.bootstrap, "t")
    assert [value for value in values if value < 100][: len(acknowledged + more)] == acknowledged + more
    assert len(values) == len(set(values))


@pytest.mark.full
def test_a_broker_id_that_is_taken(tmp_path: Path) -> None:
    """The second broker of an id says so in one line and ends with status 1; the first goes on, and its data is its
    own. Killed, it comes back within its former session: it waits for the end of that, and fails not."""
    require("java")
    with LocalCluster(str(tmp_path), 1, {"min.insync.replicas": "1"}) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic("t", 1, 1)])["t"].result(20)
        assert len(produce(cluster.bootstrap, 0, 5)) == 5
        log_file = Path(cluster.data(1)) / "t-0" / f"{0:020d}.log"
        before = log_file.read_bytes()
        second = cluster.start_another(1, "second")
        message = second.wait_message(30)
        assert message["event"] == "bound"
        message = second.wait_message(60)
        assert message["event"] == "failed"
        assert "broker id 1 is registered by another live broker" in message["error"]
        assert "give this one another broker.id" in message["error"] and "\n" not in message["error"]
        assert second.wait(20) == 1
        assert cluster.children[1].is_running() and log_file.read_bytes() == before
        assert not list(Path(cluster.data("second")).glob("t-*"))
        assert len(produce(cluster.bootstrap, 5, 5)) == 5
        cluster.kill(1)
        cluster.restart(1)
        assert len(produce(cluster.bootstrap, 10, 5)) == 5
        assert read_numbers(cluster.bootstrap, "t") == list(range(15))
