"""kill -9 of the broker that coordinates a transaction: the next one knows it, and finishes it as its producer says.

The producers are librdkafka's and ours: kafka-python does not close the sockets with which it tries to reach a dead
broker.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster.broker.internal_topics import TRANSACTIONS_TOPIC
from cluster.client import Producer, ProducerFenced
from cluster.config.profiles import CHAOS
from cluster.coordinator.partitioning import partition_for
from tests.integration.local_cluster import LocalCluster, eventually
from tests.support.kafka_clients import TIMEOUT_S, Confluent
from tests.support.require import require
from tests.support.transactions import MAKERS, read_values

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

PARTITIONS = 4


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    require("java")
    properties = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}
    with LocalCluster(str(tmp_path_factory.mktemp("transactions")), properties=properties) as running:
        yield running


def coordinator(client: Confluent, transactional_id: str) -> int:
    """The leader of its partition, as the brokers say; -1 if there is none."""
    number = partition_for(transactional_id, int(CHAOS.broker["transaction.state.log.num.partitions"]))
    topic = client.admin.list_topics(TRANSACTIONS_TOPIC, TIMEOUT_S).topics[TRANSACTIONS_TOPIC]
    return int(topic.partitions[number].leader)


@pytest.mark.parametrize(
    ("kind", "commit"),
    [
        ("native", True),
        ("confluent", False),
        pytest.param("native", False, marks=pytest.mark.full),
        pytest.param("confluent", True, marks=pytest.mark.full),
    ],
)
def test_a_transaction_survives_its_coordinator(cluster: LocalCluster, kind: str, commit: bool) -> None:
    """Half of it is written before the broker is killed, half after; the next transaction follows as ever."""
    client = Confluent(cluster.bootstrap)
    topic = transactional_id = f"survives-{kind}-{'commit' if commit else 'abort'}"
    client.create(topic, PARTITIONS)
    producer = MAKERS[kind](cluster.bootstrap, transactional_id)
    try:
        producer.init()
        producer.begin()
        for partition in range(PARTITIONS // 2):
            producer.send(topic, partition, b"a")
        producer.flush()
        killed = coordinator(client, transactional_id)
        cluster.kill(killed)
        if kind != "native":
            # Ours finds out by itself, in the very calls that need one.
            eventually(lambda: coordinator(client, transactional_id) not in (-1, killed), TIMEOUT_S, "a coordinator")
        for partition in range(PARTITIONS // 2, PARTITIONS):
            producer.send(topic, partition, b"a")
        producer.flush()
        producer.end(commit=commit)
        producer.begin()
        for partition in range(PARTITIONS):
            producer.send(topic, partition, b"b")
        producer.flush()
        producer.end(commit=True)
        expected = [b"a", b"b"] if commit else [b"b"]
        for partition in range(PARTITIONS):
            assert read_values(cluster.bootstrap, topic, partition, len(expected)) == expected
        cluster.restart(killed)
        # The next test creates a topic with as many replicas.
        eventually(lambda: len(client.admin.list_topics(timeout=TIMEOUT_S).brokers) == 3, TIMEOUT_S, "three brokers")
    finally:
        producer.close()


def test_a_transaction_that_takes_too_long_is_aborted(cluster: LocalCluster) -> None:
    """Its coordinator fences the producer, which learns of it at the latest when it commits; readers continue."""
    client = Confluent(cluster.bootstrap)
    client.create("too-long", 1)
    settings = {"bootstrap.servers": cluster.bootstrap, "transactional.id": "too-long", "transaction.timeout.ms": 1_000}
    with Producer(settings) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("too-long", b"aborted", partition=0).result(TIMEOUT_S)
        client.produce("too-long", 0, [b"kept"], "all", "none")
        assert read_values(cluster.bootstrap, "too-long", 0, 1) == [b"kept"]
        with pytest.raises(ProducerFenced):
            producer.commit_transaction()
    with Producer(settings) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("too-long", b"kept, too", partition=0)
        producer.commit_transaction()
    assert read_values(cluster.bootstrap, "too-long", 0, 2) == [b"kept", b"kept, too"]
