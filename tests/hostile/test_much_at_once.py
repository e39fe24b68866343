"""Requests that are small, each just below what is done beside the loop, or many of them together: others have their
turn all the same.
"""

from __future__ import annotations

import struct
import threading
from functools import partial

import pytest

from cluster.broker.replicas.produce_checks import NAMED
from cluster.protocol import fetch, produce
from cluster.protocol.apis import ApiKey
from cluster.protocol.batch import CODEC_ZSTD
from cluster.protocol.compression import compress
from cluster.protocol.errors import ErrorCode, MalformedRequest
from cluster.protocol.messages import encode_request, encode_request_header, request_class
from cluster.protocol.primitives import MAX_TAGS, write_uvarint
from cluster.protocol.produce import ProduceResult, build_response
from cluster.protocol.records import write_varint
from tests.hostile.absence import Plain, watching
from tests.hostile.target import Target
from tests.hostile.test_decompression import bomb, framed, numbered, send

#: No turn of the broker's loop takes more processor time.
BOUND_S = 0.25


def pipelined(plain: Plain, frames: list[bytes]) -> list[bytes]:
    """Send all of them before the first answer is read."""
    data = b"".join(struct.pack(">i", len(each)) + each for each in frames)
    sending = threading.Thread(target=plain.sock.sendall, args=(data,))
    sending.start()
    answers = [plain.take() for _ in frames]
    sending.join()
    return answers


def produce_frame(topic: str, batch: bytes) -> bytes:
    request = request_class(ApiKey.PRODUCE)
    part = request.TopicProduceData.PartitionProduceData(index=0, records=batch)
    data = [request.TopicProduceData(name=topic, partition_data=[part])]
    return encode_request(request(transactional_id=None, acks=1, timeout_ms=5000, topic_data=data), 7, 1, "hostile")


@pytest.mark.integration
@pytest.mark.parametrize("count", [1000, 10_000])
def test_small_batches_of_many_records_that_came_together(broker: Target, plain: Plain, count: int) -> None:
    """A hundred batches of a hundred bytes come with one read; the records of each are numbered again."""
    plain.create_topic("together")
    frames = [produce_frame("together", bomb(count, CODEC_ZSTD))] * (300_000 // count)
    with watching(broker) as watch:
        answers = pipelined(plain, frames)
    assert len(answers) == len(frames)
    assert watch.turn_s < BOUND_S, watch


@pytest.mark.integration
def test_sixteen_headers_in_each_of_ten_thousand_records(broker: Target, plain: Plain) -> None:
    """A batch of some hundred bytes, with 160,000 headers."""
    plain.create_topic("headed")
    rest = b"\x00\x00\x00\x01\x01" + write_varint(16) + b"\x00\x01" * 16
    records = compress(CODEC_ZSTD, (write_varint(len(rest)) + rest) * 10_000)
    assert len(records) < 1000
    with watching(broker) as watch:
        [answer] = send(plain, [framed(records, 10_000, CODEC_ZSTD)], "headed")
    assert answer.error_code == ErrorCode.NONE
    assert watch.turn_s < BOUND_S, watch


@pytest.mark.integration
def test_half_a_million_records_without_a_key(broker: Target, plain: Plain) -> None:
    """In a compacted topic: the first of them are named, not all."""
    plain.create_topic("keyless", cleanup_policy="compact")
    records = compress(CODEC_ZSTD, numbered(500_000))
    with watching(broker) as watch:
        [answer] = send(plain, [framed(records, 500_000, CODEC_ZSTD)], "keyless")
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in answer.record_errors] == list(range(NAMED))
    assert watch.turn_s < BOUND_S, watch


def tags(count: int) -> bytes:
    return write_uvarint(count) + b"".join(write_uvarint(tag) + b"\0" for tag in range(count))


@pytest.mark.parametrize("count", [MAX_TAGS, MAX_TAGS + 1])
def test_tagged_fields_of_requests_that_are_read_on_the_loop(count: int) -> None:
    """Fetch and Produce: each struct of a frame of 100 MB could have many, in all 21 s of work."""
    head = struct.pack(">iiiibii", -1, 0, 0, 1000, 0, 0, -1)
    partition = bytes(32) + b"\0"
    fetches = [
        head + b"\x02\x02t\x01" + tags(count) + b"\x01\x01\0",
        head + b"\x02\x02t\x02" + partition[:-1] + tags(count) + b"\0\x01\x01\0",
        head + b"\x01\x02\x02t\x01" + tags(count) + b"\x01\0",
        head + b"\x01\x01\x01" + tags(count),
    ]
    produces = [
        b"\x00" + struct.pack(">hi", 1, 0) + rest
        for rest in (
            b"\x02\x02t\x02" + bytes(4) + b"\0" + tags(count) + b"\0\0",
            b"\x02\x02t\x01" + tags(count) + b"\0",
            b"\x01" + tags(count),
        )
    ]
    parses = [partial(fetch.parse_request, memoryview(body), 12) for body in fetches]
    parses += [partial(produce.parse_request, memoryview(body), 9) for body in produces]
    for parse in parses:
        if count <= MAX_TAGS:
            parse()
        else:
            with pytest.raises(MalformedRequest, match="tagged fields"):
                parse()


@pytest.mark.integration
def test_a_header_of_a_megabyte_of_tagged_fields(broker: Target, plain: Plain) -> None:
    """The connection is closed before they are looked at."""
    header = encode_request_header(ApiKey.FIND_COORDINATOR, 4, 1, "hostile")[:-1] + tags(330_000)
    with watching(broker) as watch:
        plain.put(header + b"\0\x01\0")
        with pytest.raises((EOFError, ConnectionResetError)):
            plain.take()
    assert watch.turn_s < 0.1, watch


def test_answers_keep_no_names_that_no_topic_has() -> None:
    """What is kept of an answer for the next one is kept for a thousand names: of 32 KB they were 68 MB."""
    # It is the whole process's, and may be full: begin with nothing.
    produce._single_topic.cache_clear()
    result = ProduceResult("x" * 250, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert b"x" * 250 in build_response(7, 1, [result])
    assert produce._single_topic.cache_info().currsize == 0
    build_response(7, 1, [result._replace(topic="y" * 249)])
    assert produce._single_topic.cache_info().currsize == 1
