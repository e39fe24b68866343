"""DeleteRecords and DescribeProducers as real clients' admins ask for them, on the shared cluster."""

from __future__ import annotations

import uuid

import confluent_kafka
import pytest

from tests.support.kafka_clients import EARLIEST, LATEST, TIMEOUT_S, Confluent, KafkaPython, kafka
from tests.support.up_cluster import BROKER_IDS, UpCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

RECORDS = 40


@pytest.fixture
def topic(shared_cluster: UpCluster) -> str:
    """One partition with some records of an idempotent producer."""
    name = f"deletion-{uuid.uuid4().hex[:8]}"
    client = Confluent(shared_cluster.bootstrap)
    client.create(name, 1)
    client.produce(name, 0, [b"%d" % number for number in range(RECORDS)], "idempotent", "none")
    return name


def test_librdkafka_deletes_records(shared_cluster: UpCluster, topic: str) -> None:
    """The low watermark comes back, the log begins there for readers, and the journal of the leader tells."""
    client = Confluent(shared_cluster.bootstrap)
    place = confluent_kafka.TopicPartition(topic, 0, 15)
    (future,) = client.admin.delete_records([place], request_timeout=TIMEOUT_S).values()
    assert future.result(TIMEOUT_S).low_watermark == 15
    assert client.offset_of(topic, [0], EARLIEST) == {0: 15}
    assert client.offset_of(topic, [0], LATEST) == {0: RECORDS}
    journals = [shared_cluster.data / "nodes" / str(broker_id) / "control.jsonl" for broker_id in BROKER_IDS]
    lines = [line for journal in journals for line in journal.read_text().splitlines()]
    assert sum("delete-records" in line and topic in line for line in lines) == 1


def test_kafka_python_deletes_all_and_describes_producers(shared_cluster: UpCluster, topic: str) -> None:
    """-1 is the high watermark; the producer that wrote is known with its last sequence after its records are gone."""
    client = KafkaPython(shared_cluster.bootstrap)
    try:
        place = kafka.TopicPartition(topic, 0)
        assert client.admin.delete_records({place: -1})[place]["low_watermark"] == RECORDS
        (producer,) = client.admin.describe_producers([place])[place].active_producers
        assert (producer.producer_epoch, producer.last_sequence) == (0, RECORDS - 1)
    finally:
        client.close()
