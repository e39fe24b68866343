"""kill -9 of the broker that coordinates a transaction: the next one knows it, and finishes it as its producer says.

The producer is librdkafka's: kafka-python does not close the sockets with which it tries to reach a dead broker.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster.broker.internal_topics import TRANSACTIONS_TOPIC
from cluster.config.profiles import CHAOS
from cluster.coordinator.partitioning import partition_for
from tests.integration.local_cluster import LocalCluster, eventually
from tests.support.kafka_clients import TIMEOUT_S, Confluent
from tests.support.require import require
from tests.support.transactions import ConfluentTransactions, read_values

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

PARTITIONS = 4


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    require("java")
    with LocalCluster(str(tmp_path_factory.mktemp("transactions"))) as running:
        yield running


def coordinator(client: Confluent, transactional_id: str) -> int:
    """The leader of its partition, as the brokers say; -1 if there is none."""
    number = partition_for(transactional_id, int(CHAOS.broker["transaction.state.log.num.partitions"]))
    topic = client.admin.list_topics(TRANSACTIONS_TOPIC, TIMEOUT_S).topics[TRANSACTIONS_TOPIC]
    return int(topic.partitions[number].leader)


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_survives_its_coordinator(cluster: LocalCluster, commit: bool) -> None:
    """Half of it is written before the broker is killed, half after; the next transaction follows as ever."""
    client = Confluent(cluster.bootstrap)
    topic = transactional_id = f"survives-{'commit' if commit else 'abort'}"
    client.create(topic, PARTITIONS)
    producer = ConfluentTransactions(cluster.bootstrap, transactional_id)
    try:
        producer.init()
        producer.begin()
        for partition in range(PARTITIONS // 2):
            producer.send(topic, partition, b"a")
        producer.flush()
        killed = coordinator(client, transactional_id)
        cluster.kill(killed)
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
    finally:
        producer.close()
