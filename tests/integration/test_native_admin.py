"""Our synchronous Admin against our brokers: everything that they offer to an administrator."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import confluent_kafka
import pytest

from cluster.client import Admin, AdminError, NewTopic
from cluster.client.cluster_calls import BROKER_RESOURCE, UNCLEAN
from cluster.client.offset_listing import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from cluster.protocol.errors import ErrorCode
from tests.support.kafka_clients import QUIET, TIMEOUT_S, wait_for
from tests.support.up_cluster import BROKER_IDS, UpCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

RECORDS = 20


@pytest.fixture(scope="module")
def admin(shared_cluster: UpCluster) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": shared_cluster.bootstrap, "default.api.timeout.ms": 30_000}) as made:
        yield made


@pytest.fixture(scope="module")
def topic(shared_cluster: UpCluster, admin: Admin) -> str:
    """Two partitions; the first has some records of an idempotent producer, in one batch."""
    name = f"admin-{uuid.uuid4().hex[:8]}"
    admin.create_topics([NewTopic(name, assignment={0: [1, 2], 1: [2, 3]}, configs={"retention.ms": "-1"})])
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": shared_cluster.bootstrap, "enable.idempotence": True, "linger.ms": 1000, **QUIET}
    )
    for number in range(RECORDS):
        producer.produce(name, b"%d" % number, partition=0)
    assert producer.flush(TIMEOUT_S) == 0
    return name


def test_the_cluster(admin: Admin, topic: str):
    """Brokers, controller, topics, and what lies in each broker's directory."""
    view = admin.describe_cluster()
    assert (sorted(view.brokers), view.controller_id in view.brokers, view.topics) == (list(BROKER_IDS), True, {})
    assert topic in admin.list_topics()
    described = admin.describe_topics([topic, "there-is-no-such-topic"])
    assert [described[topic].partitions[n].replicas for n in (0, 1)] == [(1, 2), (2, 3)]
    assert described["there-is-no-such-topic"].error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    directories = admin.describe_log_dirs()
    assert sorted(directories) == list(BROKER_IDS)
    held = {
        broker_id: {key: size for each in paths.values() for key, size in each.replicas.items() if key[0] == topic}
        for broker_id, paths in directories.items()
    }
    assert {broker_id: sorted(number for _, number in keys) for broker_id, keys in held.items()} == {
        1: [0],
        2: [0, 1],
        3: [1],
    }
    assert held[1][topic, 0].size_bytes > 0 and not held[1][topic, 0].is_future
    assert list(admin.describe_log_dirs([2])) == [2]


def test_topics_and_settings(admin: Admin):
    """Created, grown, changed, described and deleted; what is refused says why."""
    name = f"admin-{uuid.uuid4().hex[:8]}"
    admin.create_topics([NewTopic(name, 1, 3)])
    with pytest.raises(AdminError, match="TOPIC_ALREADY_EXISTS"):
        admin.create_topics([NewTopic(name, 1, 3)])
    admin.create_partitions(name, 3)
    assert len(admin.describe_topics([name])[name].partitions) == 3
    admin.incremental_alter_configs(name, {"retention.ms": "60000"})
    assert admin.describe_configs(name)["retention.ms"] == "60000"
    admin.incremental_alter_configs(name, {"retention.ms": None})
    assert admin.describe_configs(name)["retention.ms"] == "604800000"
    with pytest.raises(AdminError, match="INVALID_CONFIG"):
        admin.incremental_alter_configs(name, {"retention.ms": "soon"}, validate_only=True)
    assert admin.describe_configs("1", BROKER_RESOURCE)["broker.id"] == "1"
    admin.delete_topics([name])
    with pytest.raises(AdminError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        admin.delete_topics([name])


def test_partitions(admin: Admin, topic: str):
    """Offsets, deletion, producers, elections; a log that begins within a batch moves to a new broker."""
    place = (topic, 0)
    assert admin.list_offsets({place: LATEST_TIMESTAMP})[place].offset == RECORDS
    ((producer,),) = admin.describe_producers([place]).values()
    assert (producer.producer_epoch, producer.last_sequence, producer.coordinator_epoch) == (0, RECORDS - 1, -1)
    assert admin.elect_leaders(partitions=[place]) == {place: ErrorCode.ELECTION_NOT_NEEDED}
    assert admin.elect_leaders(UNCLEAN, [place]) == {place: ErrorCode.ELECTION_NOT_NEEDED}
    assert admin.delete_records({place: 5, (topic, 1): -1}) == {place: 5, (topic, 1): 0}
    admin.alter_partition_reassignments({place: [3, 1]})
    wait_for(lambda: not admin.list_partition_reassignments(), "the reassignment")
    # The controller knows first; whichever broker is asked for metadata hears of it a moment later.
    wait_for(lambda: admin.describe_topics([topic])[topic].partitions[0].replicas == (3, 1), "metadata of the move")
    with pytest.raises(AdminError, match="NO_REASSIGNMENT_IN_PROGRESS"):
        admin.alter_partition_reassignments({place: None})
    admin.elect_leaders(partitions=[place])
    wait_for(lambda: admin.describe_topics([topic])[topic].partitions[0].leader == 3, "the new replica to lead")
    assert admin.list_offsets({place: EARLIEST_TIMESTAMP})[place].offset == 5
    with pytest.raises(AdminError, match=f"OFFSET_OUT_OF_RANGE: records of {topic}-0"):
        admin.delete_records({place: RECORDS + 1})
