"""Moderate requests of many connections at once: together they hold no turn of the loop longer than one of them."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from cluster.process.processes import until
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import decode_response, encode_request, request_class
from tests.hostile.absence import HOST, Plain, watching
from tests.hostile.target import Target, target
from tests.simulation.client import batch

pytestmark = pytest.mark.integration

CONNECTIONS = 40
#: No turn takes more, in processor time; the requests of all connections take seconds.
BOUND_S = 0.1


@contextmanager
def connected(broker: Target) -> Iterator[list[Plain]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Plain(broker.port)) for _ in range(CONNECTIONS)]


def produce(topic: str, partitions: int, acks: int = -1) -> bytes:
    request = request_class(ApiKey.PRODUCE)
    part = request.TopicProduceData.PartitionProduceData
    data = [part(index=number, records=batch(b"a")) for number in range(partitions)]
    topics = [request.TopicProduceData(name=topic, partition_data=data)]
    return encode_request(
        request(transactional_id=None, acks=acks, timeout_ms=5000, topic_data=topics), 9, 7, "hostile"
    )


def codes(plain: Plain) -> list[int]:
    _, answer = decode_response(ApiKey.PRODUCE, 9, plain.take())
    return [part.error_code for topic in answer.responses for part in topic.partition_responses]


@pytest.mark.parametrize("partitions", [200, 5000])
def test_produces_to_many_partitions(broker: Target, partitions: int) -> None:
    """Of partitions that do not exist: each is refused by its name."""
    frame = produce("nowhere", partitions)
    with connected(broker) as clients, watching(broker) as watch:
        for client in clients:
            client.put(frame)
        for client in clients:
            assert codes(client) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * partitions
    assert watch.turn_s < BOUND_S, watch


def test_many_partitions_are_written(broker: Target, plain: Plain) -> None:
    """A request for 300 partitions stores a batch in each of them, and 40 of them store 40."""
    assert plain.create_topic("written", 300) == 0
    frame = produce("written", 300)
    with connected(broker) as clients, watching(broker) as watch:
        for client in clients:
            client.put(frame)
        for client in clients:
            assert codes(client) == [ErrorCode.NONE] * 300
    assert watch.turn_s < BOUND_S, watch
    listing = request_class(ApiKey.LIST_OFFSETS).ListOffsetsTopic
    asked = [
        listing.ListOffsetsPartition(partition_index=number, current_leader_epoch=-1, timestamp=-1)
        for number in range(300)
    ]
    topics = [listing(name="written", partitions=asked)]
    answer = plain.send(ApiKey.LIST_OFFSETS, 5, replica_id=-1, isolation_level=0, topics=topics)
    assert {part.offset for part in answer.topics[0].partitions} == {CONNECTIONS}


def test_without_acks_a_failure_closes_the_connection(broker: Target) -> None:
    """As it does for a request that names one partition: no one would read an answer."""
    with Plain(broker.port) as client:
        client.put(produce("nowhere", 300, acks=0))
        with pytest.raises(EOFError):
            client.take()


def small(key: ApiKey) -> Any:
    """A request of about ten kilobytes, and its version."""
    request = request_class(key)
    if key is ApiKey.METADATA:
        topics = [request.MetadataRequestTopic(topic_id=None, name=f"unknown-{number}") for number in range(700)]
        return request(topics=topics, allow_auto_topic_creation=False), 8
    parts = [
        request.ListOffsetsTopic.ListOffsetsPartition(partition_index=number, current_leader_epoch=-1, timestamp=-1)
        for number in range(700)
    ]
    topics = [request.ListOffsetsTopic(name="unknown", partitions=parts)]
    return request(replica_id=-1, isolation_level=0, topics=topics), 5


@pytest.mark.parametrize("key", [ApiKey.METADATA, ApiKey.LIST_OFFSETS])
def test_requests_that_are_decoded_on_the_loop(broker: Target, key: ApiKey) -> None:
    """Ten kilobytes of one connection are decoded at once, those of forty are not."""
    message, version = small(key)
    frame = encode_request(message, version, 7, "hostile")
    with connected(broker) as clients, watching(broker) as watch:
        for client in clients:
            client.put(frame)
        for client in clients:
            assert len(client.take()) > 10_000
    assert watch.turn_s < BOUND_S, watch


def test_answers_that_are_not_read(tmp_path: Path) -> None:
    """Beyond gapless.queued.max.response.bytes the clients that have not read for the longest time are
    disconnected; one that reads is served."""
    with target(tmp_path, gapless_queued_max_response_bytes="2000000") as broker, ExitStack() as stack:
        reader = stack.enter_context(Plain(broker.port))
        assert reader.create_topic("written", 1500) == 0
        asked = request_class(ApiKey.METADATA)
        topics = [asked.MetadataRequestTopic(topic_id=None, name="written")]
        frame = encode_request(asked(topics=topics, allow_auto_topic_creation=False), 8, 7, "hostile")
        for _ in range(CONNECTIONS):
            sock = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            # What is not read waits in the broker, not in the kernel.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect((HOST, broker.port))
            sock.sendall((struct.pack(">i", len(frame)) + frame) * 10)
        with watching(broker) as watch:
            for _ in range(CONNECTIONS):
                reader.put(frame)
                assert len(reader.take()) > 40_000
        gone = "does not read, and others need the memory"
        assert until(lambda: gone in broker.log(), 20), broker.log()
        assert watch.turn_s < BOUND_S, watch
        assert broker.log().count(gone) < CONNECTIONS
