"""Real admin clients against ``gapless up``: configurations, elections, reassignment, log directories."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from cluster.process.processes import until
from tests.support.kafka_clients import TIMEOUT_S, Confluent, KafkaPython, kafka
from tests.support.up_cluster import UpCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def librdkafka(shared_cluster: UpCluster) -> Confluent:
    return Confluent(shared_cluster.bootstrap)


@pytest.fixture(scope="module")
def kafka_python(shared_cluster: UpCluster) -> Iterator[KafkaPython]:
    client = KafkaPython(shared_cluster.bootstrap)
    yield client
    client.close()


def placed(kafka_python: KafkaPython, replicas: list[int]) -> str:
    """A topic whose one partition stands on these brokers."""
    topic = f"admin-{uuid.uuid4().hex[:8]}"
    kafka_python.admin.create_topics([kafka.admin.NewTopic(topic, replica_assignments={0: replicas})])
    return topic


def partition(librdkafka: Confluent, topic: str) -> tuple[int, list[int], set[int]]:
    """(leader, replicas, ISR) of partition 0."""
    found = librdkafka.admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions.get(0)
    return (-1, [], set()) if found is None else (found.leader, list(found.replicas), set(found.isrs))


def test_kafka_python_changes_settings(kafka_python: KafkaPython, librdkafka: Confluent) -> None:
    """Set, append and delete; librdkafka reads the same; what is refused has the broker's text."""
    topic = placed(kafka_python, [1, 2, 3])
    kind = kafka.admin.ConfigResourceType.TOPIC

    def alter(**configs: object) -> str:
        wanted = {key.replace("_", "."): value for key, value in configs.items()}
        resource = kafka.admin.ConfigResource(kind, topic, wanted)
        answer = kafka_python.admin.alter_configs([resource], raise_on_unknown=False)
        return str(answer["topic"][topic])

    def read() -> dict[str, ConfigEntry]:
        (future,) = librdkafka.admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]).values()
        return dict(future.result(TIMEOUT_S))

    assert alter(retention_ms="60000", cleanup_policy=("APPEND", "compact")) == "OK"
    found = read()
    assert (found["retention.ms"].value, found["cleanup.policy"].value) == ("60000", "delete,compact")
    assert not found["retention.ms"].is_default
    assert alter(retention_ms=("DELETE", None)) == "OK"
    assert read()["retention.ms"].value == "604800000"
    assert "retention.ms" in alter(retention_ms="soon")
    assert "did you mean" in alter(retenton_ms="1")


def test_librdkafka_changes_settings(kafka_python: KafkaPython, librdkafka: Confluent) -> None:
    """Of a topic, incrementally; of a broker, dynamic ones alone."""
    topic = placed(kafka_python, [1, 2, 3])

    def alter(kind: ConfigResource.Type, name: str, key: str, value: str) -> None:
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(kind, name, incremental_configs=[entry])
        (future,) = librdkafka.admin.incremental_alter_configs([resource]).values()
        future.result(TIMEOUT_S)

    alter(ConfigResource.Type.TOPIC, topic, "min.insync.replicas", "2")
    kind = kafka.admin.ConfigResourceType
    resources = [kafka.admin.ConfigResource(kind.TOPIC, topic), kafka.admin.ConfigResource(kind.BROKER, "2")]
    found = kafka_python.admin.describe_configs(resources, config_filter="all")
    assert found["topic"][topic]["min.insync.replicas"]["value"] == "2"
    alter(ConfigResource.Type.BROKER, "2", "log.retention.bytes", "123456789")
    found = kafka_python.admin.describe_configs(resources, config_filter="all")
    entry = found["broker"]["2"]["log.retention.bytes"]
    assert (entry["value"], entry["config_source"]) == ("123456789", "DYNAMIC_BROKER_CONFIG")
    back = kafka.admin.ConfigResource(kind.BROKER, "2", {"log.retention.bytes": ("DELETE", None)})
    assert kafka_python.admin.alter_configs([back], raise_on_unknown=False) == {"broker": {"2": "OK"}}
    with pytest.raises(KafkaException, match="cannot be changed while the broker runs"):
        alter(ConfigResource.Type.BROKER, "2", "log.dirs", "/elsewhere")


def test_partitions_move_and_their_leaders_with_them(kafka_python: KafkaPython, librdkafka: Confluent) -> None:
    """kafka-python reassigns; librdkafka sees the new replicas, elects the preferred one, reads what was written."""
    topic = placed(kafka_python, [1, 2])
    librdkafka.produce(topic, 0, [b"v"] * 50, "all", "none")
    where = kafka.TopicPartition(topic, 0)
    admin = kafka_python.admin
    assert admin.alter_partition_reassignments({where: [3, 2]}) == {where: None}
    assert until(lambda: not admin.list_partition_reassignments([where]), TIMEOUT_S)
    assert until(lambda: partition(librdkafka, topic) == (3, [3, 2], {2, 3}), TIMEOUT_S)
    assert [value for _, _, value in librdkafka.read(topic, {0: 50})[0]] == [b"v"] * 50

    assert admin.alter_partition_reassignments({where: [2, 3]}) == {where: None}
    assert until(lambda: partition(librdkafka, topic)[1:] == ([2, 3], {2, 3}), TIMEOUT_S)
    wanted = [TopicPartition(topic, 0)]
    # A controller that has just been elected may have looked at the balance before us.
    librdkafka.admin.elect_leaders(ElectionType.PREFERRED, wanted).result(TIMEOUT_S)
    assert until(lambda: partition(librdkafka, topic)[0] == 2, TIMEOUT_S)
    outcome = librdkafka.admin.elect_leaders(ElectionType.PREFERRED, wanted).result(TIMEOUT_S)
    assert [error.name() for error in outcome.values()] == ["ELECTION_NOT_NEEDED"]

    refused = admin.alter_partition_reassignments({where: [9], kafka.TopicPartition(topic, 5): [1]})
    assert {each.partition: error.errno for each, error in refused.items() if error} == {0: 39, 5: 3}
    assert admin.alter_partition_reassignments({where: None})[where].errno == 85


def test_kafka_python_describes_log_directories(
    shared_cluster: UpCluster, kafka_python: KafkaPython, librdkafka: Confluent
) -> None:
    """The size is the file's, and the directory is the broker's."""
    topic = placed(kafka_python, [1, 2, 3])
    librdkafka.produce(topic, 0, [b"v" * 1000] * 20, "all", "none")
    for found in kafka_python.admin.describe_log_dirs([topic]):
        (directory,) = found["log_dirs"]
        size = len(shared_cluster.log(found["broker"], topic))
        assert size > 20_000
        assert directory["error_code"] == 0
        assert directory["log_dir"] == str(shared_cluster.data / "nodes" / str(found["broker"]) / "data")
        ((partition_,),) = ([p for t in directory["topics"] if t["name"] == topic for p in t["partitions"]],)
        assert (partition_["partition_size"], partition_["offset_lag"]) == (size, 0)
