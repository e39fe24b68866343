"""kill -9 of the broker that coordinates a group: another one takes over, with what was committed.

Members are librdkafka's: kafka-python does not close the sockets with which it tries to reach a broker that is down.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import suppress

import confluent_kafka
import pytest

from tests.integration.local_cluster import LocalCluster, eventually
from tests.support.group_members import Group, have_read, have_shared, polling
from tests.support.kafka_clients import TIMEOUT_S, Confluent
from tests.support.require import require

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

PARTITIONS = 4
#: Records of each partition, before the broker is killed and after.
COUNT = 5


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    require("java")
    with LocalCluster(str(tmp_path_factory.mktemp("failover"))) as running:
        yield running


def fill(client: Confluent, topic: str) -> None:
    for partition in range(PARTITIONS):
        client.produce(topic, partition, [b"v"] * COUNT, "all", "none")


def coordinator(client: Confluent, group_id: str) -> int | None:
    """Its broker id, asked again until there is one that has loaded the group; None if the broker asked is dead."""
    described = client.admin.describe_consumer_groups([group_id], request_timeout=TIMEOUT_S)
    try:
        return int(described[group_id].result(TIMEOUT_S).coordinator.id)
    except confluent_kafka.KafkaException as error:
        # librdkafka does not ask another broker if its connection to this one breaks
        if error.args[0].code() != confluent_kafka.KafkaError._TRANSPORT:
            raise
        return None


def committed(client: Confluent, group_id: str) -> dict[int, int]:
    asked = confluent_kafka.ConsumerGroupTopicPartitions(group_id)
    futures = client.admin.list_consumer_group_offsets([asked], request_timeout=TIMEOUT_S)
    return {each.partition: each.offset for each in futures[group_id].result(TIMEOUT_S).topic_partitions}


def test_a_group_survives_its_coordinator(cluster: LocalCluster) -> None:
    """Members continue where they were, nothing that was committed is read again, and the next member begins there."""
    client = Confluent(cluster.bootstrap)
    topic, group_id = "survives", f"group-{uuid.uuid4().hex[:8]}"
    client.create(topic, PARTITIONS)
    group = Group(cluster.bootstrap, group_id, topic)
    try:
        first, second = both = [group.join("confluent"), group.join("confluent")]
        polling(both, lambda: have_shared(both, PARTITIONS), "two members to share")
        fill(client, topic)
        polling(both, lambda: have_read(both, PARTITIONS * COUNT), "the first part")
        first.commit()
        second.commit()
        seen = {id(member): {each: len(found) for each, found in member.read().items()} for member in both}
        killed = coordinator(client, group_id)
        assert killed is not None
        cluster.kill(killed)
        eventually(lambda: coordinator(client, group_id) not in (None, killed), TIMEOUT_S, "another coordinator")
        assert committed(client, group_id) == dict.fromkeys(range(PARTITIONS), COUNT)
        fill(client, topic)

        def after() -> set[tuple[int, int]]:
            return {
                (partition, offset)
                for member in both
                for partition, found in member.read().items()
                for offset in found[seen[id(member)].get(partition, 0) :]
            }

        polling(both, lambda: len(after()) >= PARTITIONS * COUNT, "the second part")
        assert after() == {(partition, COUNT + number) for partition in range(PARTITIONS) for number in range(COUNT)}
        cluster.restart(killed)

        def all_is_committed() -> bool:
            # A member that has to join again is refused; after that it has read what is not committed again.
            for member in both:
                with suppress(confluent_kafka.KafkaException):
                    member.commit()
            return committed(client, group_id) == dict.fromkeys(range(PARTITIONS), 2 * COUNT)

        polling(both, all_is_committed, "the second part to be committed")
        first.leave()
        second.leave()
        client.produce(topic, 0, [b"last"], "all", "none")
        third = group.join("confluent")
        polling([third], third.read, "the record that is new")
        assert third.read() == {0: [2 * COUNT]}
    finally:
        group.close()
