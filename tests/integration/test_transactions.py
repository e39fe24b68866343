"""Transactions of real clients against ``gapless up``: all of it or nothing of it, once, whoever else has the id."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pytest

from cluster.client import ProducerFenced
from tests.support.kafka_clients import TIMEOUT_S, Confluent, KafkaPython, kafka, wait_for
from tests.support.stories import clean
from tests.support.transactions import MAKERS, ConfluentTransactions, Transactions, read_values
from tests.support.up_cluster import UpCluster
from verifier.evidence.run_directory import RunDirectory
from verifier.transactions.evidence import transaction_evidence
from verifier.transactions.model import TransactionEvidence
from verifier.transactions.transaction_checks import audit

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

PARTITIONS = 3


@pytest.fixture(scope="module")
def librdkafka(shared_cluster: UpCluster) -> Confluent:
    return Confluent(shared_cluster.bootstrap)


@pytest.fixture(scope="module")
def kafka_python(shared_cluster: UpCluster) -> Iterator[KafkaPython]:
    client = KafkaPython(shared_cluster.bootstrap)
    yield client
    client.close()


@pytest.fixture
def topic(librdkafka: Confluent) -> str:
    name = f"tx-{uuid.uuid4().hex[:8]}"
    librdkafka.create(name, PARTITIONS)
    return name


Make = Callable[..., Transactions]


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest, shared_cluster: UpCluster) -> Iterator[Make]:
    """Makes producers of one kind of client, which are closed in the end."""
    made: list[Transactions] = []

    def maker(transactional_id: str, **settings: Any) -> Transactions:
        made.append(MAKERS[request.param](shared_cluster.bootstrap, transactional_id, **settings))
        return made[-1]

    yield maker
    for each in made:
        each.close()


def new_id() -> str:
    return f"id-{uuid.uuid4().hex[:8]}"


def test_all_or_nothing(shared_cluster: UpCluster, topic: str, make: Make) -> None:
    """What is committed is read under read_committed, in every partition; what is aborted is read by no one there."""
    producer = make(new_id())
    producer.init()
    for value, commit in ((b"a", True), (b"b", False), (b"c", True)):
        producer.begin()
        for partition in range(PARTITIONS):
            producer.send(topic, partition, value)
        # librdkafka drops what is not sent yet when it aborts.
        producer.flush()
        producer.end(commit=commit)
    for partition in range(PARTITIONS):
        assert read_values(shared_cluster.bootstrap, topic, partition, 2) == [b"a", b"c"]
    assert read_values(shared_cluster.bootstrap, topic, 0, 3, "read_uncommitted") == [b"a", b"b", b"c"]


def test_nothing_is_read_before_the_decision(shared_cluster: UpCluster, topic: str, make: Make) -> None:
    """Not what is in the transaction, nor what comes after it; then both, in the order of the log."""
    producer = make(new_id())
    producer.init()
    producer.begin()
    producer.send(topic, 0, b"first")
    producer.flush()
    Confluent(shared_cluster.bootstrap).produce(topic, 0, [b"second"], "all", "none")
    assert read_values(shared_cluster.bootstrap, topic, 0, 1, wait_s=1.0) == []
    producer.end(commit=True)
    assert read_values(shared_cluster.bootstrap, topic, 0, 2) == [b"first", b"second"]


def test_a_second_producer_fences_the_first(shared_cluster: UpCluster, topic: str, make: Make) -> None:
    """The one that was there cannot commit anymore, and what it wrote is aborted."""
    transactional_id = new_id()
    first = make(transactional_id)
    first.init()
    first.begin()
    first.send(topic, 0, b"of the past")
    first.flush()
    second = make(transactional_id)
    second.init()
    with pytest.raises((confluent_kafka.KafkaException, kafka.errors.KafkaError, ProducerFenced)):
        first.end(commit=True)
    second.begin()
    second.send(topic, 0, b"kept")
    second.end(commit=True)
    assert read_values(shared_cluster.bootstrap, topic, 0, 1) == [b"kept"]


@pytest.mark.parametrize("commit", [True, False])
def test_consume_transform_produce(shared_cluster: UpCluster, librdkafka: Confluent, topic: str, commit: bool) -> None:
    """Offsets are committed with the records that were made of what was read, or not at all."""
    group_id, source = f"group-{uuid.uuid4().hex[:8]}", f"{topic}-source"
    librdkafka.create(source, 1)
    librdkafka.produce(source, 0, [b"1", b"2", b"3"], "all", "none")
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": shared_cluster.bootstrap, "group.id": group_id, "auto.offset.reset": "earliest",
         "enable.auto.commit": False, "log_level": 2}
    )  # fmt: skip
    producer = ConfluentTransactions(shared_cluster.bootstrap, new_id())
    try:
        consumer.subscribe([source])
        producer.init()
        producer.begin()
        count = 0
        while count < 3:
            message = wait_for(lambda: consumer.poll(0.5), "a record to transform")
            assert message.error() is None, message.error()
            producer.send(topic, 0, message.value() * 2)
            count += 1
        producer.send_offsets(consumer.position(consumer.assignment()), consumer.consumer_group_metadata())
        producer.end(commit=commit)
        partition = confluent_kafka.TopicPartition(source, 0)

        def stored() -> int:
            return int(consumer.committed([partition], TIMEOUT_S)[0].offset)

        if commit:
            wait_for(lambda: stored() == 3, "the offsets")
            assert read_values(shared_cluster.bootstrap, topic, 0, 3) == [b"11", b"22", b"33"]
        else:
            assert stored() == confluent_kafka.OFFSET_INVALID
            assert read_values(shared_cluster.bootstrap, topic, 0, 1, wait_s=1.0) == []
    finally:
        consumer.close()
        producer.close()


def test_kafka_python_commits_offsets(shared_cluster: UpCluster, kafka_python: KafkaPython, topic: str) -> None:
    """kafka-python commits offsets of a group without members in a transaction."""
    group_id = f"group-{uuid.uuid4().hex[:8]}"
    producer = MAKERS["kafka-python"](shared_cluster.bootstrap, new_id())
    try:
        producer.init()
        producer.begin()
        producer.send(topic, 0, b"v")
        offset = kafka.OffsetAndMetadata(7, "", -1)
        producer.send_offsets({kafka.TopicPartition(topic, 1): offset}, group_id)
        producer.end(commit=True)
        asked = kafka_python.admin.list_group_offsets
        wait_for(lambda: {each.offset for each in asked(group_id)[group_id].values()} == {7}, "the offset")
    finally:
        producer.close()


def test_the_verifier_accuses_no_one(shared_cluster: UpCluster) -> None:
    """Its audits of decisions, markers and aborted transactions find nothing in what all these clients have left."""

    seen: list[TransactionEvidence] = []

    def is_well() -> bool:
        found = transaction_evidence(RunDirectory(shared_cluster.data), clean().model())
        assert found is not None
        seen[:] = [found]
        return audit(found) == [] and all(log.is_whole for log in found.logs.values())

    # the last batches and markers may be on their way while the files are read
    wait_for(is_well, "whole files with nothing wrong in them")
    assert sum(map(len, seen[0].state.by_producer.values())) > 0
    assert not seen[0].state.damaged


def test_what_admins_see(shared_cluster: UpCluster, kafka_python: KafkaPython, topic: str) -> None:
    """The open transaction with its state, its producer and its partitions, at its coordinator alone."""
    transactional_id = new_id()
    producer = MAKERS["confluent"](shared_cluster.bootstrap, transactional_id)
    try:
        producer.init()
        producer.begin()
        producer.send(topic, 0, b"v")
        producer.flush()
        admin = kafka_python.admin
        described = admin.describe_transactions([transactional_id])[transactional_id]
        assert (described.state.name, described.transaction_timeout_ms) == ("ONGOING", 60_000)
        producer.end(commit=True)
    finally:
        producer.close()
