"""The Fetch codec against kafka-python's, both ways, in every version that is served."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.protocol import fetch, messages
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import MalformedRequest
from cluster.protocol.fetch_request import MAX_VERSION, MIN_VERSION
from cluster.seams.memory_storage import MemoryStorage
from cluster.seams.storage import payload_size, range_of
from tests.cluster.protocol.malformed import assert_only_malformed, mutations
from tests.cluster.protocol.strategies import FETCH_REQUESTS, FETCH_RESULTS, INT16, INT32, TEXT

VERSIONS = st.integers(MIN_VERSION, MAX_VERSION)
Request = messages.request_class(ApiKey.FETCH)
Topic = Request.FetchTopic


def as_sent(request: fetch.FetchRequest, version: int) -> fetch.FetchRequest:
    """What of a request survives this version."""
    return request._replace(
        session_id=request.session_id if version >= 7 else 0,
        session_epoch=request.session_epoch if version >= 7 else -1,
        forgotten=request.forgotten if version >= 7 else [],
        rack_id=request.rack_id if version >= 11 else "",
        partitions=[
            entry._replace(
                current_leader_epoch=entry.current_leader_epoch if version >= 9 else -1,
                last_fetched_epoch=entry.last_fetched_epoch if version >= 12 else -1,
                log_start_offset=entry.log_start_offset if version >= 5 else -1,
            )
            for entry in request.partitions
        ],
    )


def native_request(request: fetch.FetchRequest):
    """The same request as a message of kafka-python."""
    topics: dict[str, list] = {}
    for topic, *fields in request.partitions:
        names = (
            "partition",
            "current_leader_epoch",
            "fetch_offset",
            "last_fetched_epoch",
            "log_start_offset",
            "partition_max_bytes",
        )
        entry = Topic.FetchPartition(**dict(zip(names, fields, strict=True)))
        topics.setdefault(topic, []).append(entry)
    forgotten: dict[str, list[int]] = {}
    for topic, partition in request.forgotten:
        forgotten.setdefault(topic, []).append(partition)
    return Request(
        replica_id=request.replica_id,
        max_wait_ms=request.max_wait_ms,
        min_bytes=request.min_bytes,
        max_bytes=request.max_bytes,
        isolation_level=request.isolation_level,
        session_id=request.session_id,
        session_epoch=request.session_epoch,
        topics=[Topic(topic=name, partitions=entries) for name, entries in topics.items()],
        forgotten_topics_data=[
            Request.ForgottenTopic(topic=name, partitions=entries) for name, entries in forgotten.items()
        ],
        rack_id=request.rack_id,
    )


@given(FETCH_REQUESTS, VERSIONS)
def test_requests_are_parsed_as_kafka_python_wrote_them(request, version):
    """Whatever kafka-python encodes, the hand-written parser reads back field by field."""
    body = bytes(native_request(request).encode(version=version))
    assert fetch.parse_request(memoryview(body), version) == as_sent(request, version)


@given(FETCH_REQUESTS, VERSIONS, INT32, st.none() | TEXT)
def test_requests_are_built_as_kafka_python_builds_them(request, version, correlation_id, client_id):
    """A follower's request is byte for byte what kafka-python would send."""
    expected = messages.encode_request(native_request(request), version, correlation_id, client_id)
    assert fetch.build_request(version, correlation_id, client_id, request) == expected


def as_received(result: fetch.FetchResult, version: int) -> fetch.FetchResult:
    """What of a result survives this version; no records are empty records."""
    return result._replace(
        records=result.records or b"",
        log_start_offset=result.log_start_offset if version >= 5 else -1,
        preferred_read_replica=result.preferred_read_replica if version >= 11 else -1,
        diverging=result.diverging if version >= 12 else None,
        current_leader=result.current_leader if version >= 12 else None,
    )


@given(FETCH_RESULTS, VERSIONS, INT32, INT16, INT32)
def test_responses_survive_our_own_parser(results, version, correlation_id, error_code, session_id):
    """A follower reads back what a leader wrote."""
    frame = b"".join(fetch.build_response(version, correlation_id, error_code, session_id, iter(results)))
    response = fetch.parse_response(memoryview(frame), version)
    assert response.correlation_id == correlation_id
    assert response.partitions == [as_received(result, version) for result in results]
    assert (response.error_code, response.session_id) == ((error_code, session_id) if version >= 7 else (0, 0))


@given(FETCH_RESULTS, VERSIONS, INT32)
def test_responses_are_what_kafka_python_reads(results, version, throttle_time_ms):
    """kafka-python's own decoder finds the same values, tagged fields included."""
    frame = b"".join(fetch.build_response(version, 5, 0, 9, results, throttle_time_ms))
    response = messages.response_class(ApiKey.FETCH).decode(frame, version=version, header=True)
    assert response == messages.decode_response(ApiKey.FETCH, version, frame)[1]
    assert response.throttle_time_ms == throttle_time_ms
    seen = []
    for topic in response.responses:
        for entry in topic.partitions:
            aborted = entry.aborted_transactions
            diverging, leader = entry.diverging_epoch, entry.current_leader
            seen.append(
                fetch.FetchResult(
                    topic.topic,
                    entry.partition_index,
                    entry.error_code,
                    entry.high_watermark,
                    entry.last_stable_offset,
                    entry.log_start_offset,
                    entry.records,
                    None if diverging is None else (diverging.epoch, diverging.end_offset),
                    None if leader is None else (leader.leader_id, leader.leader_epoch),
                    None if aborted is None else [(item.producer_id, item.first_offset) for item in aborted],
                    entry.preferred_read_replica,
                )
            )
    assert seen == [as_received(result, version) for result in results]


@pytest.mark.parametrize("version", [4, 11, 12])
def test_a_file_range_is_passed_on_untouched(version):
    """Records in a file stay a FileRange between two buffers, and count with their size."""
    file = MemoryStorage().open("segment")
    file.append(b"0123456789")
    records = range_of(file, 2, 5)
    parts = fetch.build_response(version, 1, 0, 0, [fetch.FetchResult("t", 0, 0, 9, 9, 0, records)])
    assert parts[1] is records
    frame = b"".join(b"23456" if part is records else part for part in parts)
    assert payload_size(parts) == len(frame)
    parsed = fetch.parse_response(memoryview(frame), version).partitions[0].records
    assert parsed == b"23456"


def test_records_of_a_response_are_writable_views():
    """A follower patches and appends in place: records are views into the frame."""
    frame = bytearray(b"".join(fetch.build_response(12, 1, 0, 0, [fetch.FetchResult("t", 0, 0, 9, 9, 0, b"abc")])))
    records = fetch.parse_response(memoryview(frame), 12).partitions[0].records
    assert isinstance(records, memoryview)
    records[0] = ord("X")
    assert b"Xbc" in frame


def test_null_records_read_as_empty():
    """Other brokers may send null records; to a reader that is the same as none."""
    head = struct.pack(">iiihihih", 1, 0, 0, 0, 0, 0, 0, 0)[:14]
    topic = struct.pack(">ih1si", 1, 1, b"t", 1)
    partition = struct.pack(">ihqqqiii", 0, 0, 9, 9, 0, -1, -1, -1)
    parsed = fetch.parse_response(memoryview(head + topic + partition), 11)
    assert parsed.partitions[0].records == b""


@pytest.mark.parametrize("version", [-1, 0, 3, 13, 18])
def test_versions_outside_the_window_are_refused(version):
    """Neither requests nor responses of other versions are parsed."""
    with pytest.raises(MalformedRequest):
        fetch.parse_request(memoryview(b""), version)
    with pytest.raises(MalformedRequest):
        fetch.parse_response(memoryview(b""), version)


@given(FETCH_REQUESTS, VERSIONS, mutations())
def test_only_malformed_request_comes_out_of_requests(request, version, mutate):
    """Truncated and mutated requests are refused with MalformedRequest, or happen to be valid."""
    body = bytes(native_request(request).encode(version=version))
    assert_only_malformed(lambda data: fetch.parse_request(memoryview(data), version), mutate(body))


@given(FETCH_RESULTS, VERSIONS, mutations())
def test_only_malformed_request_comes_out_of_responses(results, version, mutate):
    """Truncated and mutated responses are refused with MalformedRequest, or happen to be valid."""
    frame = b"".join(fetch.build_response(version, 5, 0, 9, results))
    assert_only_malformed(lambda data: fetch.parse_response(memoryview(data), version), mutate(frame))
