"""Our Consumer while brokers die, and against a cluster that is not ours: each has a cluster of its own. And our Admin
under gevent, where that cluster will do.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from cluster.client import Admin, Consumer, ConsumerRecord, NewTopic
from cluster.protocol.apis import SUPPORTED, ApiKey
from tests.integration.local_cluster import LocalCluster
from tests.support.kafka_clients import QUIET, TIMEOUT_S, wait_for
from tests.support.require import require

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

ROOT = Path(__file__).resolve().parents[2]
TOPIC = "t"


def produce(bootstrap: str, first: int, count: int, codec: str = "none") -> None:
    settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "compression.type": codec, **QUIET}
    producer = confluent_kafka.Producer(settings)
    for number in range(first, first + count):
        producer.produce(TOPIC, b"%06d" % number, partition=0)
    assert producer.flush(TIMEOUT_S) == 0


def read_until(consumer: Consumer, found: list[ConsumerRecord], count: int) -> None:
    """Append to ``found`` until there are so many."""
    wait_for(lambda: found.extend(consumer.poll(1)) or len(found) >= count, f"{count} records")


@pytest.mark.full
def test_leaders_are_killed_while_they_are_read(tmp_path: Path):
    """Every record once, in order, over kills of each leader; the dead ones come back."""
    require("java")
    with LocalCluster(str(tmp_path)) as cluster, Admin({"bootstrap.servers": cluster.bootstrap}) as admin:
        admin.create_topics([NewTopic(TOPIC, 1, 3)])
        found: list[ConsumerRecord] = []
        keys = {"auto.offset.reset": "none", "fetch.max.wait.ms": 100, "max.poll.records": 70}
        with Consumer({"bootstrap.servers": cluster.bootstrap, **keys}) as consumer:
            consumer.assign([(TOPIC, 0)])
            consumer.seek((TOPIC, 0), 0)
            for turn in range(3):
                produce(cluster.bootstrap, 500 * turn, 500)
                read_until(consumer, found, 500 * turn + 100)
                leader = consumer.partitions_for(TOPIC)[0].leader
                cluster.kill(leader)
                read_until(consumer, found, 500 * turn + 500)
                cluster.restart(leader)
            assert [(each.offset, each.value) for each in found] == [(n, b"%06d" % n) for n in range(1500)]


@pytest.fixture
def mock_cluster() -> Iterator[str]:
    """librdkafka's mock cluster, with a topic of four partitions."""
    program = [sys.executable, "-m", "tests.loadgen.mock_cluster", "3", TOPIC]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait(20)


def test_librdkafkas_mock_cluster(mock_cluster: str):
    """Other brokers than ours: what a producer wrote there is read, in every codec, by leader epochs and offsets."""
    for number, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        produce(mock_cluster, 100 * number, 100, codec)
    with Consumer({"bootstrap.servers": mock_cluster, "auto.offset.reset": "earliest"}) as consumer:
        assert len(consumer.partitions_for(TOPIC)) == 4
        assert consumer.end_offsets([(TOPIC, 0), (TOPIC, 1)]) == {(TOPIC, 0): 500, (TOPIC, 1): 0}
        consumer.assign([(TOPIC, 0), (TOPIC, 1)])
        found: list[ConsumerRecord] = []
        read_until(consumer, found, 500)
        assert [(each.offset, each.value) for each in found] == [(n, b"%06d" % n) for n in range(500)]


@pytest.fixture
def old_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mock cluster says that it serves newer versions of these, and closes the connection when it is sent one."""
    for api_key, version in ((ApiKey.JOIN_GROUP, 5), (ApiKey.SYNC_GROUP, 3), (ApiKey.HEARTBEAT, 3)):
        monkeypatch.setitem(SUPPORTED, api_key, (0, version))


@pytest.mark.usefixtures("old_groups")
def test_a_group_in_librdkafkas_mock_cluster(mock_cluster: str):
    """Another coordinator than ours: join, read, commit, leave, and continue there as the next member."""
    produce(mock_cluster, 0, 50)
    # A new member waits there for about the session timeout of the last one that left.
    timers = {"session.timeout.ms": 2_000, "heartbeat.interval.ms": 200}
    config = {"bootstrap.servers": mock_cluster, "group.id": "g", "auto.offset.reset": "earliest", **timers}
    with Consumer(config) as first:
        first.subscribe([TOPIC])
        found: list[ConsumerRecord] = []
        read_until(first, found, 50)
        assert [each.offset for each in found] == list(range(50))
        assert len(first.assignment()) == 4
        first.commit_sync({(TOPIC, 0): 20})
        committed = first.committed([(TOPIC, 0), (TOPIC, 1)])
        assert {key: place and place.offset for key, place in committed.items()} == {(TOPIC, 0): 20, (TOPIC, 1): None}
        first.unsubscribe()
    with Consumer({**config, "enable.auto.commit": False}) as second:
        second.subscribe([TOPIC])
        again: list[ConsumerRecord] = []
        read_until(second, again, 30)
        assert [each.offset for each in again] == list(range(20, 50))


GEVENT_GROUP = """
import sys
from gevent import monkey; monkey.patch_all()
from cluster.client import Consumer
from cluster.protocol.apis import SUPPORTED, ApiKey
SUPPORTED.update({ApiKey.JOIN_GROUP: (0, 5), ApiKey.SYNC_GROUP: (0, 3), ApiKey.HEARTBEAT: (0, 3)})
with Consumer({"bootstrap.servers": sys.argv[1], "group.id": "g", "auto.offset.reset": "earliest"}) as consumer:
    consumer.subscribe(["t"])
    found = []
    while len(found) < 50:
        found += consumer.poll(1)
    consumer.commit_sync()
    print(consumer.committed([("t", 0)])["t", 0].offset == 50)
"""


def test_a_group_under_gevent(mock_cluster: str):
    """The connection to the coordinator is carried on by a greenlet where gevent has patched threads."""
    produce(mock_cluster, 0, 50)
    run_program(GEVENT_GROUP, mock_cluster)


GEVENT = """
import sys
from gevent import monkey; monkey.patch_all()
import gevent
from cluster.client import Consumer
turns = []
def other():
    while True:
        turns.append(1)
        gevent.sleep(0.02)
spinning = gevent.spawn(other)
with Consumer({"bootstrap.servers": sys.argv[1], "auto.offset.reset": "earliest"}) as consumer:
    consumer.assign([("t", 0)])
    found = []
    while len(found) < 50:
        found += consumer.poll(1)
    before = len(turns)
    assert consumer.poll(0.5) == []
    assert len(turns) > before + 5, "others do not run while a poll waits"
    print([record.offset for record in found] == list(range(50)))
"""


def test_under_gevent(mock_cluster: str):
    """Where gevent has patched sockets, a poll that waits lets other greenlets run."""
    produce(mock_cluster, 0, 50)
    run_program(GEVENT, mock_cluster)


GEVENT_ADMIN = """
import sys
from gevent import monkey; monkey.patch_all()
import gevent
from cluster.client import Admin
config = {"bootstrap.servers": sys.argv[1]}
with Admin(config) as first, Admin(config) as second:
    jobs = [gevent.spawn(each.describe_topics, ["t"]) for each in (first, second) * 5]
    found = [job.value for job in gevent.joinall(jobs, timeout=30, raise_error=True)]
    second.close()
    assert len(found) == 10 and first.list_topics() == ["t"]
with Admin(config) as third:
    print({len(each["t"].partitions) for each in found} == {4} and third.list_topics() == ["t"])
"""


def test_admins_under_gevent(mock_cluster: str):
    """Where threads are greenlets: several at a time, used by several, and one more when these are closed."""
    run_program(GEVENT_ADMIN, mock_cluster)


def run_program(text: str, bootstrap: str) -> None:
    """A program that prints True in the end."""
    done = subprocess.run(
        [sys.executable, "-c", text, bootstrap], capture_output=True, text=True, cwd=ROOT, timeout=60, check=False
    )
    assert (done.stdout.strip(), done.returncode) == ("True", 0), done.stderr


def test_one_thread_at_a_time(mock_cluster: str):
    """Another thread that calls while a poll waits is refused, and the poll goes on."""
    with Consumer({"bootstrap.servers": mock_cluster, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([(TOPIC, 0)])
        assert consumer.position((TOPIC, 0)) == 0
        found: list[ConsumerRecord] = []
        polling = threading.Thread(target=lambda: found.extend(consumer.poll(TIMEOUT_S)))
        polling.start()
        wait_for(lambda: consumer._one_thread.is_busy, "the poll")
        with pytest.raises(RuntimeError, match="not safe for multi-threaded access"):
            consumer.poll(0)
        produce(mock_cluster, 0, 1)
        polling.join(TIMEOUT_S)
        assert [each.value for each in found] == [b"000000"]
