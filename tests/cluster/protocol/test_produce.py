"""The Produce codec against kafka-python's, both ways, in every version that is served."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.protocol import messages, produce
from cluster.protocol.apis import PRODUCE_MIN_VERSION, ApiKey
from cluster.protocol.errors import MalformedRequest
from cluster.protocol.primitives import READ_ERRORS
from tests.cluster.protocol.malformed import assert_only_malformed, mutations
from tests.cluster.protocol.strategies import INT32, PRODUCE_REQUESTS, PRODUCE_RESULTS

VERSIONS = st.integers(PRODUCE_MIN_VERSION, produce.MAX_VERSION)
Request = messages.request_class(ApiKey.PRODUCE)
Topic = Request.TopicProduceData


def encode(request: produce.ProduceRequest, version: int) -> bytes:
    """The body of a request, as kafka-python encodes it."""
    topics: dict[str, list] = {}
    for topic, partition, records in request.partitions:
        entry = Topic.PartitionProduceData(index=partition, records=records)
        topics.setdefault(topic, []).append(entry)
    message = Request(
        transactional_id=request.transactional_id,
        acks=request.acks,
        timeout_ms=request.timeout_ms,
        topic_data=[Topic(name=name, partition_data=entries) for name, entries in topics.items()],
    )
    return bytes(message.encode(version=version))


@given(PRODUCE_REQUESTS, VERSIONS)
def test_requests_are_parsed_as_kafka_python_wrote_them(request, version):
    """Whatever kafka-python encodes, the hand-written parser reads back field by field."""
    parsed = produce.parse_request(memoryview(encode(request, version)), version)
    assert parsed == request


@given(PRODUCE_RESULTS, VERSIONS, INT32, INT32)
def test_responses_are_what_kafka_python_reads(results, version, correlation_id, throttle_time_ms):
    """kafka-python decodes our responses to the same values; what a version cannot carry is at its default."""
    frame = produce.build_response(version, correlation_id, results, throttle_time_ms)
    seen_id, response = messages.decode_response(ApiKey.PRODUCE, version, frame)
    assert (seen_id, response.throttle_time_ms) == (correlation_id, throttle_time_ms)
    assert [
        produce.ProduceResult(
            topic.name,
            entry.index,
            entry.error_code,
            entry.base_offset,
            entry.log_append_time_ms,
            entry.log_start_offset,
            entry.error_message,
            [(each.batch_index, each.batch_index_error_message) for each in entry.record_errors or ()],
        )
        for topic in response.responses
        for entry in topic.partition_responses
    ] == [
        result._replace(
            log_start_offset=result.log_start_offset if version >= 5 else -1,
            error_message=result.error_message if version >= 8 else None,
            record_errors=list(result.record_errors) if version >= 8 else [],
        )
        for result in results
    ]
    native = messages.response_class(ApiKey.PRODUCE).decode(frame, version=version, header=True)
    assert native == response


def test_results_of_one_topic_are_grouped():
    """Clients expect a topic once, also when the results of two topics alternate."""
    results = [produce.ProduceResult(topic, partition, 0, 7) for partition in (0, 1) for topic in ("a", "b")]
    _, response = messages.decode_response(ApiKey.PRODUCE, 9, produce.build_response(9, 1, results))
    assert [(topic.name, [entry.index for entry in topic.partition_responses]) for topic in response.responses] == [
        ("a", [0, 1]),
        ("b", [0, 1]),
    ]


def test_records_are_views_into_the_frame():
    """Records are not copied: what is changed in the frame is changed in the records."""
    request = produce.ProduceRequest(None, -1, 1000, [produce.ProducePartition("t", 0, b"abc")])
    frame = bytearray(encode(request, 7))
    records = produce.parse_request(memoryview(frame), 7).partitions[0].records
    assert records is not None
    records[0] = ord("X")
    assert b"Xbc" in frame


@pytest.mark.parametrize("version", [-1, 0, 1, 2, 10, 13])
def test_versions_outside_the_window_are_refused(version):
    """Versions 0-2 may be advertised, but neither they nor newer ones are parsed."""
    with pytest.raises(MalformedRequest):
        produce.parse_request(memoryview(b""), version)


@pytest.mark.parametrize(
    ("version", "body"),
    [
        (9, bytes.fromhex("00ffff00000010ffffffff0f")),
        (7, bytes.fromhex("ffffffff000000107fffffff")),
        (7, bytes.fromhex("ffffffff00000010ffffffff")),
        (7, bytes.fromhex("ffff000100000010000000010001740000000100000000fffffffe")),
        (7, bytes.fromhex("ffff000100000010000000010001740000000100000000000000ff61")),
        (7, bytes.fromhex("ffff0001000000100000000000")),
    ],
    ids=["huge compact count", "huge count", "null topics", "negative size", "size beyond the end", "bytes after"],
)
def test_lengths_that_cannot_be_are_refused(version, body):
    """A length is compared with what is left before anything is allocated or looped over."""
    with pytest.raises(MalformedRequest):
        produce.parse_request(memoryview(body), version)


@pytest.mark.parametrize(
    ("version", "parse_short", "parse_any"),
    [(7, produce.parse_single, produce.parse_plain), (9, produce.parse_single_flexible, produce.parse_flexible)],
    ids=["plain", "flexible"],
)
@given(st.integers(0, 1), st.integers(0, 2), st.sampled_from([None, 0, 1, 200, 20_000]), mutations())
def test_a_single_partition_is_read_as_any_other(version, parse_short, parse_any, null_id, partitions, size, mutate):
    """The short way for one partition reads what the general one reads, damaged or not, or leaves it to that."""
    identity = None if null_id else "t"
    records = None if size is None else b"r" * size
    wanted = [produce.ProducePartition("topic", index, records) for index in range(partitions)]
    body = memoryview(mutate(encode(produce.ProduceRequest(identity, -1, 1000, wanted), version)))
    try:
        short = parse_short(body)
    except (*READ_ERRORS, MalformedRequest):
        with pytest.raises((*READ_ERRORS, MalformedRequest)):
            parse_any(body)
        return
    if short is not None:
        assert (short, len(body)) == parse_any(body)
    whole = memoryview(encode(produce.ProduceRequest(None, -1, 1000, wanted[:1]), version))
    assert (parse_short(whole) is not None) == (partitions > 0 and records is not None)


@given(PRODUCE_REQUESTS, VERSIONS, mutations())
def test_only_malformed_request_comes_out(request, version, mutate):
    """Truncated and mutated requests are refused with MalformedRequest, or happen to be valid."""
    assert_only_malformed(
        lambda data: produce.parse_request(memoryview(data), version), mutate(encode(request, version))
    )


@pytest.mark.parametrize("version", range(PRODUCE_MIN_VERSION, produce.MAX_VERSION + 1))
@pytest.mark.parametrize("name", ["n" * 32_767, "\u20ac" * 10_922])
def test_an_error_that_quotes_the_longest_name_is_cut_short(version, name):
    """An int16 counts the text of versions below 9: what does not fit is left out, and the request is answered."""
    refused = produce.ProduceResult(name, 0, 3, error_message=f"no partition {name}-0")
    _, response = messages.decode_response(ApiKey.PRODUCE, version, produce.build_response(version, 1, [refused]))
    assert response.responses[0].name == name
    if version >= 8:
        assert response.responses[0].partition_responses[0].error_message.startswith("no partition n"[:-1])


@pytest.mark.parametrize("version", [7, 9])
def test_what_is_no_topics_name_is_not_remembered(version):
    """A thousand names of 32 KB would be 100 MB; those of topics are found again."""

    def remembered() -> int:
        return produce._single_topic.cache_info().currsize + produce._single_compact_topic.cache_info().currsize

    before = remembered()
    for index in range(10):
        produce.build_response(version, 1, [produce.ProduceResult(f"{index}" * 250, 0, 3)])
    assert remembered() == before
    produce.build_response(version, 1, [produce.ProduceResult("a" * 249, 0, 0)])
    assert remembered() == before + 1
