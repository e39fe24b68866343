"""Requests of a megabyte, or about what is large: others are served meanwhile."""

from __future__ import annotations

import struct
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from cluster.protocol.apis import ApiKey
from cluster.protocol.batch import CODEC_ZSTD
from cluster.protocol.compression import compress
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.hostile.absence import Plain, watching
from tests.hostile.target import Target, target
from tests.hostile.test_decompression import framed, numbered, send
from tests.hostile.test_repetition import produce
from tests.simulation.client import batch

pytestmark = pytest.mark.integration

#: No turn of the broker's loop takes more processor time: that of a Produce request, which is parsed on the loop.
BOUND_S = 0.25
#: What is decoded, encoded or looked up off the loop takes a few milliseconds of it; on the loop it would take more.
BESIDE_S = 0.06


def list_offsets(plain: Plain, topic: str, partitions: int, timestamp: int) -> list[tuple[int, int, int]]:
    """(error code, timestamp, offset) of each partition."""
    topic_class = request_class(ApiKey.LIST_OFFSETS).ListOffsetsTopic
    asked: list[Any] = [
        topic_class.ListOffsetsPartition(partition_index=number, timestamp=timestamp, current_leader_epoch=-1)
        for number in range(partitions)
    ]
    topics = [topic_class(name=topic, partitions=asked)]
    answer = plain.send(ApiKey.LIST_OFFSETS, 7, replica_id=-1, isolation_level=0, topics=topics)
    return [(found.error_code, found.timestamp, found.offset) for found in answer.topics[0].partitions]


def test_a_timestamp_in_large_batches(broker: Target, plain: Plain) -> None:
    """ListOffsets looks through a batch with much in it off the loop, and finds what it found before."""
    plain.create_topic("timed", 3)
    large = framed(compress(CODEC_ZSTD, numbered(60_000)), 60_000, CODEC_ZSTD)
    answers = send(plain, [large] * 3, "timed")
    assert [answer.error_code for answer in answers] == [ErrorCode.NONE] * 3
    with watching(broker) as watch:
        assert list_offsets(plain, "timed", 3, 0) == [(ErrorCode.NONE, 0, 0)] * 3
    assert list_offsets(plain, "timed", 3, 1) == [(ErrorCode.NONE, -1, -1)] * 3
    assert watch.turn_s < BESIDE_S, watch


def metadata() -> tuple[int, dict[str, Any]]:
    topic = request_class(ApiKey.METADATA).MetadataRequestTopic
    names = [topic(name=f"{number:x}") for number in range(40_000)]
    return 9, {"topics": names, "allow_auto_topic_creation": False}


def coordinators() -> tuple[int, dict[str, Any]]:
    return 4, {"key_type": 0, "coordinator_keys": [f"{number:x}" for number in range(60_000)]}


def produce_to_many() -> tuple[int, dict[str, Any]]:
    topic = request_class(ApiKey.PRODUCE).TopicProduceData
    parts = [topic.PartitionProduceData(index=number, records=None) for number in range(39_000)]
    data = [topic(name="many", partition_data=parts)]
    return 9, {"transactional_id": None, "acks": -1, "timeout_ms": 5000, "topic_data": data}


@pytest.mark.parametrize(
    ("api_key", "asked", "codes"),
    [
        (ApiKey.METADATA, metadata, lambda answer: [topic.error_code for topic in answer.topics]),
        (ApiKey.FIND_COORDINATOR, coordinators, lambda answer: [found.error_code for found in answer.coordinators]),
        (ApiKey.PRODUCE, produce_to_many, lambda a: [part.error_code for part in a.responses[0].partition_responses]),
    ],
)  # fmt: skip
def test_many_different_names(broker: Target, plain: Plain, api_key: ApiKey, asked: Any, codes: Any) -> None:
    """A request of some hundred kilobytes names tens of thousands of things that are not there: each is answered."""
    version, fields = asked()
    [things] = [value for value in fields.values() if isinstance(value, list)]
    expected = len(things) if api_key is not ApiKey.PRODUCE else len(things[0].partition_data)
    with watching(broker) as watch:
        found = codes(plain.send(api_key, version, **fields))
    assert len(found) == expected
    [code] = {*found}
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or api_key is ApiKey.FIND_COORDINATOR
    assert watch.turn_s < (BOUND_S if api_key is ApiKey.PRODUCE else BESIDE_S), watch


def test_half_sent_requests_have_a_bound(tmp_path: Path) -> None:
    """queued.max.request.bytes: what does not fit is not read, while small requests are served as ever."""
    with target(tmp_path, queued_max_request_bytes="4000000") as broker, ExitStack() as stack:
        plain = stack.enter_context(Plain(broker.port))
        assert plain.create_topic("small") == ErrorCode.NONE
        before_bytes = broker.memory_bytes()
        for _ in range(12):
            half = stack.enter_context(Plain(broker.port))
            half.sock.settimeout(0.02)
            with suppress(TimeoutError):
                half.sock.sendall(struct.pack(">i", 3_000_000) + bytes(2_900_000))
        assert produce(plain, "small", batch(b"x")).error_code == ErrorCode.NONE
        assert broker.memory_bytes() - before_bytes < 15_000_000
