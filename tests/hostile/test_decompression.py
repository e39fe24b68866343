"""What unpacks to much, or takes long to unpack or to look at: it costs whoever sends it, and nobody else (H1, H2)."""

from __future__ import annotations

import asyncio
import gzip
import struct
import time
from typing import Any

import pytest
from crc32c import crc32c

from cluster.broker.replicas.produce_checks import look_inside
from cluster.client.connection import BrokerConnection
from cluster.log.config import LogConfig
from cluster.protocol.apis import ApiKey
from cluster.protocol.batch import CODEC_GZIP, CODEC_LZ4, CODEC_NONE, CODEC_SNAPPY, CODEC_ZSTD, parse_header
from cluster.protocol.compression import compress, decompress
from cluster.protocol.errors import CorruptBatch, ErrorCode, InvalidBatch
from cluster.protocol.messages import encode_request, request_class
from cluster.protocol.record_checks import MAX_RECORDS, MOST_OUT_OF_ORDER, Effort
from cluster.protocol.records import NewRecord, build_batch, write_varint
from tests.cluster.broker.scenes import TOPIC, with_topic
from tests.hostile.absence import Plain, watching
from tests.hostile.target import Target
from tests.simulation.client import Client, batch
from tests.simulation.nodes import MemoryCluster

#: No turn of the broker's loop takes more.
BOUND_S = 0.25


def test_many_members_of_gzip_take_no_longer_than_one() -> None:
    """40 KB of 800 members, 13 MB when they are unpacked: a fraction of a second, where it was many."""
    member = gzip.compress(bytes(16_000))
    data = member * (40_000 // len(member))
    begun = time.process_time()
    unpacked = decompress(CODEC_GZIP, data)
    assert time.process_time() - begun < 1
    assert unpacked == bytes(16_000 * (len(data) // len(member)))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_members_count_together(count: int) -> None:
    """The bound is on all that comes out, to the byte; a last member that is cut or damaged is no end."""
    data = gzip.compress(b"x" * 10) * count
    assert decompress(CODEC_GZIP, data, 10 * count) == b"x" * 10 * count
    for spoilt, limit_bytes in [(data, 10 * count - 1), (data[:-1], 100), (data + b"x", 100), (data + b"\0", 100)]:
        with pytest.raises(CorruptBatch):
            decompress(CODEC_GZIP, spoilt, limit_bytes)


@pytest.mark.parametrize("codec", [CODEC_GZIP, CODEC_LZ4, CODEC_ZSTD])
def test_nothing_is_more_than_nothing(codec: int) -> None:
    """A bound of zero bytes lets none out."""
    assert decompress(codec, compress(codec, b""), 0) == b""
    with pytest.raises(CorruptBatch):
        decompress(codec, compress(codec, b"x"), 0)


def framed(payload: bytes, count: int, codec: int) -> bytes:
    """A batch of what may be ``count`` records."""
    checked = struct.pack(">hiqqqhii", codec, count - 1, 0, 0, -1, -1, -1, count) + payload
    return struct.pack(">qiibI", 0, 9 + len(checked), -1, 2, crc32c(checked)) + checked


def bomb(count: int, codec: int) -> bytes:
    """Records of eight bytes, each the first of its batch: all must be numbered again."""
    return framed(compress(codec, b"\x0e\x00\x00\x00\x01\x02v\x00" * count), count, codec)


def numbered(count: int) -> bytes:
    """As small records without a key, in their order: nothing is to be mended, and each is looked at."""
    bodies = [b"\0\0" + write_varint(delta) + b"\x01\x02v\0" for delta in range(count)]
    return b"".join(write_varint(len(body)) + body for body in bodies)


def send(plain: Plain, batches: list[bytes], topic: str) -> list[Any]:
    """One request of one batch for each partition."""
    request = request_class(ApiKey.PRODUCE)
    parts = [request.TopicProduceData.PartitionProduceData(index=i, records=each) for i, each in enumerate(batches)]
    data = [request.TopicProduceData(name=topic, partition_data=parts)]
    answer = plain.send(ApiKey.PRODUCE, 9, transactional_id=None, acks=-1, timeout_ms=30_000, topic_data=data)
    return list(answer.responses[0].partition_responses)


@pytest.mark.integration
@pytest.mark.parametrize("codec", [CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4, CODEC_ZSTD])
def test_bombs_in_one_request(broker: Target, plain: Plain, codec: int) -> None:
    """Four batches of 10,000 records in some kilobytes, whose records are numbered again, while others are served."""
    plain.create_topic("bombed", 8)
    batches = [bomb(MOST_OUT_OF_ORDER, codec)] * 4
    assert sum(map(len, batches)) < (200_000 if codec == CODEC_SNAPPY else 100_000)
    with watching(broker) as watch:
        answers = send(plain, [*batches, batch(b"good")], "bombed")
    assert [answer.error_code for answer in answers] == [ErrorCode.NONE] * 5
    assert watch.turn_s < BOUND_S, watch
    assert watch.answers > 10, watch


def test_half_a_million_records_are_not_numbered_again() -> None:
    """450 bytes that took four seconds and 200 MB: they are refused at the second record."""
    records = memoryview(bomb(MAX_RECORDS - 1000, CODEC_ZSTD))
    assert len(records) < 1000
    begun = time.process_time()
    with pytest.raises(InvalidBatch) as refused:
        look_inside(records, parse_header(records), LogConfig(), Effort.all())
    assert refused.value.error_code is ErrorCode.INVALID_RECORD
    assert time.process_time() - begun < 1


@pytest.mark.integration
def test_what_a_request_unpacks_to_is_bounded_together(broker: Target, plain: Plain) -> None:
    """Three batches of 40 MB: the third is refused, as one of 120 MB would be."""
    plain.create_topic("bombed", 8)
    size = 40_000_000
    body = b"\0\0\0\x01" + write_varint(size) + bytes(size) + b"\0"
    large = framed(compress(CODEC_ZSTD, write_varint(len(body)) + body), 1, CODEC_ZSTD)
    with watching(broker) as watch:
        answers = send(plain, [large] * 3, "bombed")
    assert [a.error_code for a in answers] == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR]
    assert watch.turn_s < BOUND_S, watch


@pytest.mark.integration
@pytest.mark.parametrize("headers", [0, 100])
def test_a_megabyte_of_the_smallest_records(broker: Target, plain: Plain, headers: int) -> None:
    """Uncompressed, in no order that could be checked at once, or with many headers: the same."""
    plain.create_topic("small", 8)
    rest = b"\x00\x00\x00\x01\x01" + write_varint(headers) + b"\x00\x01" * headers
    one = write_varint(len(rest)) + rest
    count = 900_000 // len(one)
    with watching(broker) as watch:
        [answer] = send(plain, [framed(one * count, count, CODEC_NONE)], "small")
    # Each is the first of its batch: there are too many to number them again, or they do not fit any more then.
    expected = ErrorCode.MESSAGE_TOO_LARGE if count <= MOST_OUT_OF_ORDER else ErrorCode.INVALID_RECORD
    assert answer.error_code in (ErrorCode.NONE, expected)
    assert watch.turn_s < BOUND_S, watch


@pytest.mark.parametrize("codec", [CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4, CODEC_ZSTD])
def test_what_is_looked_at_elsewhere_keeps_its_place(codec: int) -> None:
    """Requests behind a large one on its connection are appended behind it, and answered in their order."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        large = build_batch([NewRecord(1_700_000_000_000, None, b"%d" % n) for n in range(30_000)], codec=codec)
        connection = client.connection
        sent = [connection.exchange(_request(connection, each), bytes) for each in (batch(b"a"), large, batch(b"b"))]
        for answer in [asyncio.ensure_future(each) for each in sent]:
            await answer
        log = cluster.nodes[1].replicas.partitions[TOPIC, 0].log
        assert log.log_end_offset == 30_002
        assert (await client.fetch(TOPIC, 30_001)).values == [b"b"]
        assert (await client.fetch(TOPIC, 0, max_bytes=100)).values == [b"a"]

    with_topic(check)


def test_a_partition_named_twice_is_written_once() -> None:
    """As in Kafka's map: of two batches for one partition the last counts."""

    async def check(cluster: MemoryCluster, client: Client) -> None:
        request = request_class(ApiKey.PRODUCE)
        parts = [request.TopicProduceData.PartitionProduceData(index=0, records=batch(value)) for value in (b"a", b"b")]
        data = [request.TopicProduceData(name=TOPIC, partition_data=parts)]
        fields = {"transactional_id": None, "acks": -1, "timeout_ms": 3000, "topic_data": data}
        answer = await client.send(ApiKey.PRODUCE, 9, **fields)
        assert [p.error_code for p in answer.responses[0].partition_responses] == [ErrorCode.NONE]
        assert (await client.fetch(TOPIC, 0)).values == [b"b"]

    with_topic(check)


def _request(connection: BrokerConnection, records: bytes) -> bytes:
    request = request_class(ApiKey.PRODUCE)
    part = request.TopicProduceData.PartitionProduceData(index=0, records=records)
    data = [request.TopicProduceData(name=TOPIC, partition_data=[part])]
    message = request(transactional_id=None, acks=1, timeout_ms=3000, topic_data=data)
    return encode_request(message, 9, connection.next_correlation_id(), "hostile")
