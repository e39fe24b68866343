"""Consumer groups of real clients against ``gapless up``: partitions are shared, offsets survive, admins look on."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest

from cluster.coordinator.group.records import OffsetKey, parse_key
from cluster.process.processes import until
from tests.support.group_members import Group, have_read, have_shared, polling
from tests.support.kafka_clients import TIMEOUT_S, Confluent, KafkaPython, kafka
from tests.support.kcat import Kcat
from tests.support.require import require
from tests.support.up_cluster import BROKER_IDS, UpCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

PARTITIONS = 4
ALL = set(range(PARTITIONS))
#: Records of each partition.
COUNT = 5
OFFSETS_TOPIC = "__consumer_offsets"


@pytest.fixture(scope="module")
def librdkafka(shared_cluster: UpCluster) -> Confluent:
    return Confluent(shared_cluster.bootstrap)


@pytest.fixture(scope="module")
def kafka_python(shared_cluster: UpCluster) -> Iterator[KafkaPython]:
    client = KafkaPython(shared_cluster.bootstrap)
    yield client
    client.close()


@pytest.fixture
def numbered(librdkafka: Confluent) -> str:
    """A new topic with ``COUNT`` records in each partition."""
    topic = f"shared-{uuid.uuid4().hex[:8]}"
    librdkafka.create(topic, PARTITIONS)
    fill(librdkafka, topic)
    return topic


def fill(librdkafka: Confluent, topic: str) -> None:
    for partition in ALL:
        librdkafka.produce(topic, partition, [b"v"] * COUNT, "all", "none")


@pytest.fixture
def group_id() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def group(shared_cluster: UpCluster, numbered: str, group_id: str) -> Iterator[Group]:
    """All its members have left in the end."""
    made = Group(shared_cluster.bootstrap, group_id, numbered)
    yield made
    made.close()


@pytest.mark.parametrize("name", ["confluent", "kafka-python"])
def test_two_members_share_and_one_takes_over(librdkafka: Confluent, numbered: str, group: Group, name: str) -> None:
    """Each record is read once: by the first member, by two, by the one that is left, and by the next one."""
    first = group.join(name)
    polling([first], lambda: have_read([first], PARTITIONS * COUNT), "what was there")
    first.commit()
    second = group.join(name)
    both = [first, second]
    polling(both, lambda: have_shared(both, PARTITIONS), "two members to share")
    fill(librdkafka, numbered)
    polling(both, lambda: have_read(both, PARTITIONS * 2 * COUNT), "the second part")
    second.commit()
    first.commit()
    first.leave()
    polling([second], lambda: second.assigned() == ALL, "the second member to take over")
    fill(librdkafka, numbered)
    polling([second], lambda: have_read(both, PARTITIONS * 3 * COUNT), "the third part")
    second.commit()
    second.leave()
    third = group.join(name)
    librdkafka.produce(numbered, 0, [b"last"], "all", "none")
    polling([third], third.read, "the record that is new")
    assert third.read() == {0: [3 * COUNT]}
    for partition in ALL:
        read = [offset for member in both for offset in member.read().get(partition, [])]
        assert sorted(read) == list(range(3 * COUNT)), partition


def test_both_clients_are_members_of_one_group(group: Group) -> None:
    """They share a protocol, and each understands the assignment that the other has made."""
    first = group.join("confluent", **{"partition.assignment.strategy": "range"})
    polling([first], lambda: first.assigned() == ALL, "the first member to have all")
    second = group.join("kafka-python")
    polling([first, second], lambda: have_shared([first, second], PARTITIONS), "two members to share")
    first.leave()
    polling([second], lambda: second.assigned() == ALL, "the second member to take over")


def test_cooperative_members_keep_what_they_have(group: Group) -> None:
    """KIP-429, two rebalances in a row: the second member gets what the first one gives up, and no more."""
    settings = {"partition.assignment.strategy": "cooperative-sticky"}
    first = group.join("confluent", **settings)
    polling([first], lambda: first.assigned() == ALL, "the first member to have all")
    second = group.join("confluent", **settings)
    polling([first, second], lambda: have_shared([first, second], PARTITIONS), "two members to share")
    assert len(first.assigned()) == len(second.assigned()) == PARTITIONS // 2


def test_a_static_member_comes_back(group: Group) -> None:
    """KIP-345: it leaves without a word, and has its partitions again without a rebalance of the others."""
    settings = {"group.instance.id": "a", "session.timeout.ms": 30_000}
    first = group.join("confluent", **settings)
    second = group.join("confluent")
    polling([first, second], lambda: have_shared([first, second], PARTITIONS), "two members to share")
    before, others = first.assigned(), second.assigned()
    first.leave()
    again = group.join("confluent", **settings)
    polling([again, second], again.assigned, "the static member to be back")
    assert (again.assigned(), second.assigned()) == (before, others)


def test_the_topic_of_offsets_is_made_by_the_first_who_asks(
    shared_cluster: UpCluster, librdkafka: Confluent, numbered: str, group_id: str
) -> None:
    """Although nothing else is created by being asked for; a commit is in the log of every replica."""
    place = confluent_kafka.TopicPartition(numbered, 1, 3)
    consumer = librdkafka.consumer(numbered, [1], **{"group.id": group_id})
    consumer.commit(offsets=[place], asynchronous=False)
    consumer.close()
    found = librdkafka.admin.list_topics(OFFSETS_TOPIC, timeout=TIMEOUT_S).topics[OFFSETS_TOPIC].partitions
    assert {tuple(sorted(partition.replicas)) for partition in found.values()} == {BROKER_IDS}

    def keys(broker_id: int) -> set[tuple[str, tuple[str, int]]]:
        records = [
            parse_key(record.key or b"")
            for partition in found
            for header, records in shared_cluster.batches(broker_id, OFFSETS_TOPIC, partition)
            for record in records
            if not header.is_control  # the marker of another test's transaction
        ]
        return {(key.group_id, key.topic_partition) for key in records if isinstance(key, OffsetKey)}

    for broker_id in BROKER_IDS:
        assert until(lambda broker_id=broker_id: (group_id, (numbered, 1)) in keys(broker_id), TIMEOUT_S)


def test_librdkafka_administers_groups(librdkafka: Confluent, numbered: str, group: Group) -> None:
    """ListGroups, DescribeGroups, OffsetFetch, OffsetCommit and DeleteGroups by its admin."""
    admin, group_id = librdkafka.admin, group.group_id
    member = group.join("confluent", **{"client.id": "me"})
    polling([member], lambda: have_read([member], PARTITIONS * COUNT), "all records")
    member.commit()

    def describe() -> Any:
        return admin.describe_consumer_groups([group_id])[group_id].result(TIMEOUT_S)

    described = describe()
    assert described.state == confluent_kafka.ConsumerGroupState.STABLE
    assert [each.client_id for each in described.members] == ["me"]
    assert {each.partition for each in described.members[0].assignment.topic_partitions} == ALL
    assert group_id in {each.group_id for each in admin.list_consumer_groups().result(TIMEOUT_S).valid}
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        admin.delete_consumer_groups([group_id])[group_id].result(TIMEOUT_S)
    assert refused.value.args[0].code() == confluent_kafka.KafkaError.NON_EMPTY_GROUP
    member.leave()
    assert until(lambda: describe().state == confluent_kafka.ConsumerGroupState.EMPTY, TIMEOUT_S)

    def offsets() -> dict[int, int]:
        asked = confluent_kafka.ConsumerGroupTopicPartitions(group_id)
        found = admin.list_consumer_group_offsets([asked])[group_id].result(TIMEOUT_S)
        return {each.partition: each.offset for each in found.topic_partitions}

    assert offsets() == dict.fromkeys(ALL, COUNT)
    place = confluent_kafka.TopicPartition(numbered, 2, 1)
    altered = confluent_kafka.ConsumerGroupTopicPartitions(group_id, [place])
    admin.alter_consumer_group_offsets([altered])[group_id].result(TIMEOUT_S)
    assert offsets() == {**dict.fromkeys(ALL, COUNT), 2: 1}
    admin.delete_consumer_groups([group_id])[group_id].result(TIMEOUT_S)
    assert describe().state == confluent_kafka.ConsumerGroupState.DEAD
    assert group_id not in {each.group_id for each in admin.list_consumer_groups().result(TIMEOUT_S).valid}


def test_kafka_python_administers_groups(kafka_python: KafkaPython, numbered: str, group: Group) -> None:
    """The same, and OffsetDelete, and a member that is removed by LeaveGroup."""
    admin, group_id = kafka_python.admin, group.group_id
    member = group.join("kafka-python", **{"client.id": "me", "group.instance.id": "static"})
    polling([member], lambda: have_read([member], PARTITIONS * COUNT), "all records")
    member.commit()
    described = admin.describe_groups([group_id])[group_id]
    assert described["group_state"] == "Stable"
    assert [each["client_id"] for each in described["members"]] == ["me"]
    listed = {each["group_id"]: each for each in admin.list_groups(states_filter=["Stable"])}
    assert (listed[group_id]["group_state"], listed[group_id]["protocol_type"]) == ("Stable", "consumer")
    assert admin.delete_groups([group_id]) == {group_id: "NonEmptyGroupError"}
    place = kafka.TopicPartition(numbered, 0)
    refused = admin.delete_group_offsets(group_id, [place])
    assert refused == {place: kafka.errors.GroupSubscribedToTopicError}
    member.leave()
    removed = admin.remove_group_members(group_id, [kafka.admin.MemberToRemove(group_instance_id="static")])
    assert list(removed.values()) == [kafka.errors.NoError]

    def offsets() -> dict[int, int]:
        found = admin.list_group_offsets({group_id: None})[group_id]
        return {each.partition: committed.offset for each, committed in found.items()}

    assert offsets() == dict.fromkeys(ALL, COUNT)
    assert admin.delete_group_offsets(group_id, [place]) == {place: kafka.errors.NoError}
    assert offsets() == dict.fromkeys(ALL - {0}, COUNT)
    admin.delete_groups([group_id])
    assert offsets() == {}
    assert group_id not in {each["group_id"] for each in admin.list_groups()}


def test_kcat_resumes_where_its_group_is(
    shared_cluster: UpCluster, librdkafka: Confluent, numbered: str, group_id: str
) -> None:
    """``kcat -G``: it reads to the end of every partition, commits as it leaves, and then reads what is new."""
    kcat = Kcat(require("kcat"), shared_cluster.bootstrap, librdkafka)
    for offsets in (range(COUNT), range(COUNT, 2 * COUNT)):
        found = kcat.group_read(group_id, numbered)
        assert found == {partition: [*offsets] for partition in ALL}
        fill(librdkafka, numbered)
