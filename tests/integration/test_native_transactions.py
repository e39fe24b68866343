"""Transactions of the native producer that other clients' do not show: groups, fencing in all calls, closing, mocks."""

from __future__ import annotations

import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from cluster.client import (
    AbortableTransactionError,
    ConsumerGroupMetadata,
    IllegalTransactionCall,
    Producer,
    ProducerFenced,
)
from cluster.client.producer.futures import RecordFuture
from cluster.protocol.errors import ErrorCode
from tests.support.kafka_clients import TIMEOUT_S, Confluent, KafkaPython, kafka, wait_for
from tests.support.transactions import read_values
from tests.support.up_cluster import ROOT, UpCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


@pytest.fixture
def topic(shared_cluster: UpCluster) -> str:
    name = f"native-tx-{uuid.uuid4().hex[:8]}"
    Confluent(shared_cluster.bootstrap).create(name, 2)
    return name


@contextmanager
def producer_of(bootstrap: str, transactional_id: str, **settings: object) -> Iterator[Producer]:
    """It has its id."""
    keys = {key.replace("_", "."): value for key, value in settings.items()}
    config = {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, **keys}
    with Producer(config) as producer:
        producer.init_transactions()
        yield producer


@contextmanager
def member_of(bootstrap: str, topic: str, group_id: str) -> Iterator[ConsumerGroupMetadata]:
    """A consumer that has the topic's partitions, as a producer is told of it."""
    consumer = kafka.KafkaConsumer(
        topic, bootstrap_servers=bootstrap.split(","), group_id=group_id, enable_auto_commit=False
    )
    try:
        wait_for(lambda: consumer.poll(200) or consumer.assignment(), "an assignment")
        yield ConsumerGroupMetadata(*consumer.group_metadata()[:4])
    finally:
        consumer.close()


def offsets_of(client: KafkaPython, group_id: str) -> set[int]:
    return {each.offset for each in client.admin.list_group_offsets(group_id)[group_id].values()}


def test_offsets_of_a_member_go_with_the_records(shared_cluster: UpCluster, topic: str) -> None:
    """KIP-447: committed together or not at all; of a generation that is over, nothing is."""
    group_id = f"group-{topic}"
    client = KafkaPython(shared_cluster.bootstrap)
    try:
        with (
            member_of(shared_cluster.bootstrap, topic, group_id) as member,
            producer_of(shared_cluster.bootstrap, topic) as producer,
        ):
            assert member.generation_id > 0 and member.member_id
            producer.begin_transaction()
            producer.send(topic, b"aborted", partition=1)
            producer.send_offsets_to_transaction({(topic, 0): 5}, member)
            producer.abort_transaction()
            producer.begin_transaction()
            with pytest.raises(AbortableTransactionError) as caught:
                producer.send_offsets_to_transaction(
                    {(topic, 0): 6}, member._replace(generation_id=member.generation_id + 1)
                )
            assert caught.value.error_code is ErrorCode.ILLEGAL_GENERATION
            producer.abort_transaction()
            assert offsets_of(client, group_id) == set()
            producer.begin_transaction()
            producer.send(topic, b"committed", partition=1)
            producer.send_offsets_to_transaction({(topic, 0): 7}, member)
            producer.commit_transaction()
            wait_for(lambda: offsets_of(client, group_id) == {7}, "the offset")
        assert read_values(shared_cluster.bootstrap, topic, 1, 1) == [b"committed"]
    finally:
        client.close()


def test_a_zombie_cannot_write_and_closing_aborts(shared_cluster: UpCluster, topic: str) -> None:
    """A second producer fences the first in whatever it does next; what the second leaves open is aborted at once."""
    with producer_of(shared_cluster.bootstrap, topic) as first:
        first.begin_transaction()
        first.send(topic, b"of the past", partition=0).result(TIMEOUT_S)
        with producer_of(shared_cluster.bootstrap, topic) as second:
            second.begin_transaction()
            second.send(topic, b"left open", partition=0).result(TIMEOUT_S)
            # A leader that has not heard of the second yet takes no record of the first for another partition either.
            assert first.send(topic, b"too late", partition=1).exception(TIMEOUT_S) is not None
            with pytest.raises(ProducerFenced):
                first.abort_transaction()
            assert isinstance(first.fatal_error, ProducerFenced)
    with producer_of(shared_cluster.bootstrap, f"{topic}-other") as other:
        with pytest.raises(IllegalTransactionCall):
            other.commit_transaction()
        other.begin_transaction()
        for partition in (0, 1):
            other.send(topic, b"kept", partition=partition)
        other.commit_transaction()
    for partition in (0, 1):
        assert read_values(shared_cluster.bootstrap, topic, partition, 1) == [b"kept"]


@contextmanager
def mock_cluster() -> Iterator[str]:
    """librdkafka's, with two brokers and a topic ``mock`` of four partitions."""
    argv = [sys.executable, "-m", "tests.loadgen.mock_cluster", "2", "mock"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


def test_librdkafkas_mock_cluster_takes_our_transactions() -> None:
    """Another implementation's coordinators: records, offsets, commit and abort. It fences no one."""
    with mock_cluster() as bootstrap, producer_of(bootstrap, "mock") as producer:
        for commit in (True, False, True):
            producer.begin_transaction()
            futures = [producer.send("mock", b"v", partition=partition) for partition in range(4)]
            producer.send_offsets_to_transaction({("mock", 0): 3}, "group")
            if commit:
                producer.commit_transaction()
            else:
                producer.flush()
                producer.abort_transaction()
            assert {future.exception(TIMEOUT_S) for future in futures} == {None}


def test_threads_share_a_transaction() -> None:
    """While one commits, the others' records are in the transaction, and then have their outcome, or are refused."""
    sent: list[RecordFuture] = []
    refused: list[IllegalTransactionCall] = []
    stopped, progress = threading.Event(), threading.Semaphore(0)

    def send(producer: Producer, partition: int) -> None:
        while not stopped.is_set():
            try:
                sent.append(producer.send("mock", b"v", partition=partition))
                progress.release()
            except IllegalTransactionCall as error:
                refused.append(error)
                # Let the others run.
                stopped.wait(0.001)

    with mock_cluster() as bootstrap, producer_of(bootstrap, "threads", linger_ms=5) as producer:
        producer.partitions_for("mock")
        with ThreadPoolExecutor(3) as pool:
            running = [pool.submit(send, producer, partition) for partition in range(3)]
            try:
                for _ in range(10):
                    producer.begin_transaction()
                    assert all(progress.acquire(timeout=TIMEOUT_S) for _ in range(100))
                    producer.commit_transaction()
                    assert all(future.done() and future.exception(0) is None for future in tuple(sent))
            finally:
                stopped.set()
        for thread in running:
            thread.result()
    assert refused
