"""Requests of many connections that arrive together, all but their last bytes having come before.

Each is allowed by itself. A turn of the event loop serves them all, so what none of them divides adds up: it was
seconds. Work beside the loop is one piece at a time, so there it is the order that counts.
"""

from __future__ import annotations

import select
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from cluster.protocol.apis import ApiKey
from cluster.protocol.batch import CODEC_GZIP, CODEC_ZSTD
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import decode_response, encode_request, request_class
from cluster.protocol.primitives import write_uvarint
from cluster.protocol.records import NewRecord, build_batch
from tests.hostile.absence import Plain, watching
from tests.hostile.target import Target

pytestmark = pytest.mark.integration

CONNECTIONS = 100
#: Processor time of the longest turn; alone, each of these takes some milliseconds at most.
BOUND_S = 0.15
NOW_MS = 1_700_000_000_000


@contextmanager
def connected(broker: Target, count: int) -> Iterator[list[Plain]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Plain(broker.port)) for _ in range(count)]


def versions() -> bytes:
    """ApiVersions with a hundred thousand tagged fields, which no one knows: half a megabyte."""
    tags = b"".join([write_uvarint(100_000), *(write_uvarint(tag) + b"\0" for tag in range(100_000))])
    name = write_uvarint(2) + b"a"
    return struct.pack(">hhih", ApiKey.API_VERSIONS, 3, 1, 1) + b"h\0" + name + name + tags


def records() -> bytes:
    """As many records of different lengths as are examined on the loop, compressed to some tens of kilobytes."""
    irregular = (NewRecord(NOW_MS + index * 7919 % 5000, None, b"x" * (index * index % 97)) for index in range(9_900))
    return produce("together", build_batch(irregular, codec=CODEC_ZSTD))


def produce(topic: str, batch: bytes) -> bytes:
    request = request_class(ApiKey.PRODUCE)
    part = request.TopicProduceData.PartitionProduceData(index=0, records=batch)
    data = [request.TopicProduceData(name=topic, partition_data=[part])]
    return encode_request(request(transactional_id=None, acks=1, timeout_ms=5000, topic_data=data), 7, 1, "h")


def groups_to_delete() -> bytes:
    return encode_request(request_class(ApiKey.DELETE_GROUPS)(groups_names=[""] * 16_000), 2, 1, "h")


def offsets_to_delete() -> bytes:
    request = request_class(ApiKey.OFFSET_DELETE)
    topic = request.OffsetDeleteRequestTopic
    partitions = [topic.OffsetDeleteRequestPartition(partition_index=number) for number in range(4000)]
    return encode_request(request(group_id="g", topics=[topic(name="n", partitions=partitions)]), 0, 1, "h")


@pytest.mark.parametrize("frame_of", [versions, records, groups_to_delete, offsets_to_delete])
def test_what_arrives_together_holds_no_turn(broker: Target, plain: Plain, frame_of: Callable[[], bytes]) -> None:
    """Of ApiVersions, Produce, DeleteGroups and OffsetDelete: all are answered."""
    assert plain.create_topic("together") in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    frame = frame_of()
    data = struct.pack(">i", len(frame)) + frame
    with connected(broker, CONNECTIONS) as clients:
        for client in clients:
            client.sock.sendall(data[:-1])
        with watching(broker) as watch:
            for client in clients:
                client.sock.sendall(data[-1:])
            for client in clients:
                assert len(client.take()) > 4
    assert watch.turn_s < BOUND_S, watch


def test_a_long_name_of_software_is_refused_unread(plain: Plain) -> None:
    """With what KIP-511 has for names that are wrong."""
    answer = plain.send(ApiKey.API_VERSIONS, 3, client_software_name="a" * 30_000, client_software_version="1")
    assert (answer.error_code, answer.api_keys) == (ErrorCode.INVALID_REQUEST, [])


def offset_at(topic: str, timestamp: int) -> bytes:
    request = request_class(ApiKey.LIST_OFFSETS)
    partition = request.ListOffsetsTopic.ListOffsetsPartition(
        partition_index=0, timestamp=timestamp, current_leader_epoch=-1
    )
    topics = [request.ListOffsetsTopic(name=topic, partitions=[partition])]
    return encode_request(request(replica_id=-1, isolation_level=0, topics=topics), 7, 1, "h")


def test_a_small_lookup_does_not_wait_for_all_large_ones(broker: Target, plain: Plain) -> None:
    """Ten clients ask for the last of 100,000 records of a compressed batch, and one of a batch with one record."""
    large = [NewRecord(NOW_MS + index % 7, None, b"x" * (index % 9)) for index in range(100_000)]
    large.append(NewRecord(NOW_MS + 1000, None, b"last"))
    small = [NewRecord(NOW_MS + 1000, None, b"only")]
    for topic, batch in (("large.lookups", large), ("small.lookups", small)):
        assert plain.create_topic(topic) == ErrorCode.NONE
        plain.put(produce(topic, build_batch(batch, codec=CODEC_GZIP)))
        _, stored = decode_response(ApiKey.PRODUCE, 7, plain.take())
        assert stored.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    with connected(broker, 10) as clients:
        for client in clients:
            client.put(offset_at("large.lookups", NOW_MS + 1000))
        plain.put(offset_at("small.lookups", NOW_MS + 1000))
        assert offset_in(plain.take()) == 0
        answered, _, _ = select.select([client.sock for client in clients], [], [], 0)
        assert len(answered) <= 4
        assert {offset_in(client.take()) for client in clients} == {100_000}


def offset_in(frame: bytes) -> int:
    _, answer = decode_response(ApiKey.LIST_OFFSETS, 7, frame)
    return int(answer.topics[0].partitions[0].offset)
