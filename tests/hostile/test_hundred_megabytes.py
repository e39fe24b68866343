"""Requests nearly as large as a broker accepts: no turn of its loop takes a second, and what they cost is told.

Only ``make test-full`` runs these: the client itself needs seconds to write them. ``-rP`` shows the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.protocol.apis import ApiKey
from cluster.protocol.batch import CODEC_GZIP, CODEC_NONE, CODEC_ZSTD
from cluster.protocol.compression import compress
from cluster.protocol.fetch import FetchPartition, FetchRequest, build_request
from cluster.protocol.messages import encode_request, request_class
from cluster.protocol.records import write_varint
from tests.hostile.absence import Plain, watching
from tests.hostile.target import Target, target
from tests.hostile.test_decompression import framed, numbered

pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(600)]

#: No turn of the loop takes more processor time.
BOUND_S = 1.0
#: Each request has at least this, and at most the 100 MB of socket.request.max.bytes.
LEAST_BYTES = 90_000_000
#: What a broker may have more at the peak: the request, what is made of it, and the answer.
MOST_BYTES = 1_500_000_000
PARTITIONS = 100
#: The size of a record without a key, of one byte, if its offset delta takes three.
LARGEST_OF_THE_SMALLEST = 10


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Target]:
    """One that no other test has to live with."""
    with target(tmp_path) as found:
        yield found


def produced(batches: list[bytes]) -> bytes:
    request = request_class(ApiKey.PRODUCE)
    parts = [request.TopicProduceData.PartitionProduceData(index=i, records=each) for i, each in enumerate(batches)]
    data = [request.TopicProduceData(name="large", partition_data=parts)]
    message = request(transactional_id=None, acks=1, timeout_ms=30_000, topic_data=data)
    return encode_request(message, 9, 1, "hostile")


def small_records() -> bytes:
    """As many records as 100 batches of nearly the largest size hold: 9.5 million. Takes minutes."""
    count = 950_000 // LARGEST_OF_THE_SMALLEST
    return produced([framed(numbered(count), count, CODEC_NONE)] * PARTITIONS)


def bombs(codec: int) -> bytes:
    """Bombs in a few partitions, which stay below the bound for one request; one large record in each of the others."""
    size = 960_000
    body = b"\0\0\0\x01" + write_varint(size) + bytes(size) + b"\0"
    large = framed(write_varint(len(body)) + body, 1, CODEC_NONE)
    bomb = framed(compress(codec, numbered(200_000)), 200_000, codec)
    return produced([bomb if number % 20 == 0 else large for number in range(PARTITIONS)])


def fetch() -> bytes:
    """Two thousand nine hundred topics with the longest of names."""
    wanted = [FetchPartition(f"{number:032000}", 0, -1, 0, -1, -1, 1 << 20) for number in range(2900)]
    return build_request(12, 1, "hostile", FetchRequest(-1, 500, 1, 1 << 20, 0, 0, -1, wanted))


def metadata() -> bytes:
    """Nearly as many names as a request may have."""
    request = request_class(ApiKey.METADATA)
    topics = [request.MetadataRequestTopic(name=f"{number:0190}") for number in range(490_000)]
    return encode_request(request(topics=topics, allow_auto_topic_creation=False), 9, 1, "hostile")


def delete_records() -> bytes:
    """As many topics with one partition each."""
    request = request_class(ApiKey.DELETE_RECORDS)
    topic = request.DeleteRecordsTopic
    parts = [topic.DeleteRecordsPartition(partition_index=0, offset=0)]
    topics: list[Any] = [topic(name=f"{number:0370}", partitions=parts) for number in range(245_000)]
    return encode_request(request(topics=topics, timeout_ms=30_000), 2, 1, "hostile")


REQUESTS: dict[str, Callable[[], bytes]] = {
    "produce": small_records,
    "gzip": lambda: bombs(CODEC_GZIP),
    "zstd": lambda: bombs(CODEC_ZSTD),
    "fetch": fetch,
    "metadata": metadata,
    "delete-records": delete_records,
}


@pytest.mark.parametrize("what", REQUESTS)
def test_the_largest_request_holds_nobody_for_a_second(own_broker: Target, what: str) -> None:
    """It is answered, and others are served meanwhile."""
    frame = REQUESTS[what]()
    assert LEAST_BYTES < len(frame) < 104_857_600
    with Plain(own_broker.port, 300) as plain:
        plain.create_topic("large", PARTITIONS)
        with watching(own_broker) as watch:
            plain.put(frame)
            answer = plain.take()
    assert len(answer) > 4
    assert watch.turn_s < BOUND_S, watch
    assert watch.cost is not None
    assert watch.cost.peak_bytes < MOST_BYTES, watch
