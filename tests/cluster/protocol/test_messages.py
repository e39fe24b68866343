"""Messages over kafka.protocol: headers, round trips of frames, and what is refused. Bodies: tests/conformance."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.protocol import messages
from cluster.protocol.apis import INTER_BROKER, SUPPORTED, ApiKey
from cluster.protocol.errors import ErrorCode, MalformedRequest
from cluster.protocol.kafka_schemas import EncodeBufferPool, encode_body
from cluster.protocol.message_classes import MetadataRequest
from tests.cluster.protocol.malformed import assert_only_malformed
from tests.cluster.protocol.strategies import INT16, INT32, TEXT
from tests.cluster.protocol.strategies import messages as message_values

WINDOWS = SUPPORTED | INTER_BROKER


def class_of(api_key, side):
    """The message class of one side of an API."""
    return messages.request_class(api_key) if side == "request" else messages.response_class(api_key)


def draw_message(data, api_key, side):
    """(class, version, message) with a version of the window."""
    version = data.draw(st.integers(*WINDOWS[api_key]), label="version")
    message_class = class_of(api_key, side)
    return message_class, version, data.draw(message_values(message_class, version), label="message")


@given(st.data(), st.sampled_from([key for key in WINDOWS if key is not ApiKey.PRODUCE]), INT32, st.none() | TEXT)
def test_request_frames_round_trip(data, api_key, correlation_id, client_id):
    """Header and body come back, with header version 2 for flexible versions and a client id that is never compact."""
    _, version, message = draw_message(data, api_key, "request")
    frame = messages.encode_request(message, version, correlation_id, client_id)
    header = messages.parse_request_header(memoryview(frame))
    assert header[:4] == (api_key, version, correlation_id, client_id)
    decoded = messages.decode_request(messages.request_class(api_key), version, memoryview(frame)[header.body_offset :])
    assert bytes(decoded.encode(version=version)) == bytes(message.encode(version=version))


@given(st.data(), st.sampled_from([key for key in WINDOWS if key is not ApiKey.API_VERSIONS]), INT32)
def test_response_frames_round_trip(data, api_key, correlation_id):
    """Correlation id and message come back, in both versions of the header."""
    _, version, message = draw_message(data, api_key, "response")
    frame = messages.encode_response(api_key, version, correlation_id, message)
    seen_id, decoded = messages.decode_response(api_key, version, memoryview(frame))
    assert seen_id == correlation_id
    assert bytes(decoded.encode(version=version)) == bytes(message.encode(version=version))


@pytest.mark.parametrize("version", range(4))
def test_the_response_header_of_api_versions_has_no_tags(version):
    """At every version the body follows the correlation id at once, or old clients could not read it."""
    response_class = messages.response_class(ApiKey.API_VERSIONS)
    entry = response_class.ApiVersion(api_key=18, min_version=0, max_version=3)
    frame = messages.encode_response(ApiKey.API_VERSIONS, version, 7, response_class(error_code=0, api_keys=[entry]))
    assert frame[:6] == struct.pack(">ih", 7, 0)
    decoded = messages.decode_response(ApiKey.API_VERSIONS, version, frame)[1]
    assert [(item.api_key, item.min_version, item.max_version) for item in decoded.api_keys] == [(18, 0, 3)]


@given(INT32, st.integers(4, 300), st.binary(max_size=30))
def test_api_versions_of_the_future_has_a_readable_header(correlation_id, version, rest):
    """An unknown ApiVersions version is recognized whatever follows its first eight bytes."""
    header = messages.parse_request_header(struct.pack(">hhi", 18, version, correlation_id) + rest)
    assert header[:3] == (ApiKey.API_VERSIONS, version, correlation_id)


def test_the_answer_to_api_versions_of_the_future():
    """Version 0 of the body, error 35 and the window of ApiVersions alone."""
    frame = messages.encode_unsupported_api_versions(9, (0, 3))
    assert frame == struct.pack(">ihihhh", 9, 35, 1, 18, 0, 3)
    correlation_id, response = messages.decode_response(ApiKey.API_VERSIONS, 3, frame)
    assert (correlation_id, response.error_code) == (9, ErrorCode.UNSUPPORTED_VERSION)
    assert [(entry.api_key, entry.max_version) for entry in response.api_keys] == [(18, 3)]


def test_responses_of_librdkafkas_mock_cluster():
    """A refusal of ApiVersions in no version's layout tells the error; a byte after a message does no harm."""
    refusal = bytes.fromhex("00000007 0023 01 0012 0000 0002 00000000")
    correlation_id, message = messages.decode_response(ApiKey.API_VERSIONS, 3, refusal)
    assert (correlation_id, message.error_code, message.api_keys) == (7, ErrorCode.UNSUPPORTED_VERSION, [])
    response = messages.response_class(ApiKey.INIT_PRODUCER_ID)(producer_id=5)
    frame = messages.encode_response(ApiKey.INIT_PRODUCER_ID, 4, 9, response) + b"\x00"
    assert messages.decode_response(ApiKey.INIT_PRODUCER_ID, 4, frame)[1].producer_id == 5


def test_a_null_client_id():
    """Null and the empty string are told apart, in both header versions."""
    for version in (1, 9):
        for client_id in (None, ""):
            message = messages.request_class(ApiKey.METADATA)(topics=None)
            frame = messages.encode_request(message, version, 1, client_id)
            assert messages.parse_request_header(frame).client_id == client_id


@given(st.sampled_from([(0, 3), (0, 7), (1, 11), (3, 8)]), INT32, st.one_of(st.none(), st.text(max_size=20)))
def test_an_untagged_header_is_the_same_without_its_short_way(api, correlation_id, client_id):
    """Headers without tagged fields are read in one go; the body follows where the client id ends."""
    encoded = b"\xff\xff" if client_id is None else struct.pack(">h", len(client_id.encode())) + client_id.encode()
    frame = memoryview(struct.pack(">hhi", *api, correlation_id) + encoded + b"body")
    header = messages.parse_request_header(frame)
    assert header == messages.RequestHeader(*api, correlation_id, client_id, len(frame) - 4)


@given(st.binary(max_size=40))
def test_any_bytes_as_a_request_header(data):
    """Only MalformedRequest comes out."""
    assert_only_malformed(messages.parse_request_header, data)


@given(INT16, INT16, st.binary(max_size=40))
def test_any_bytes_as_a_request(api_key, version, body):
    """Any key and version: unknown ones are refused as well."""
    assert_only_malformed(lambda data: messages.decode_request(messages.request_class(api_key), version, data), body)


def test_unknown_apis_and_versions_are_refused():
    """No class, or a version beyond what the class has."""
    with pytest.raises(MalformedRequest):
        messages.request_class(9999)
    with pytest.raises(MalformedRequest):
        messages.decode_request(MetadataRequest, 99, b"")
    with pytest.raises(MalformedRequest):
        messages.decode_request(MetadataRequest, -1, b"")
    assert not messages.is_supported(9999, 0)
    assert messages.is_supported(ApiKey.METADATA, 12)
    assert not messages.is_supported(ApiKey.METADATA, 13)


@pytest.mark.parametrize("letter", ["k", "é"])
def test_texts_without_room_are_cut(letter):
    """An error quotes a name of 32,767 bytes: the text is cut, in whole letters; names and flexible layouts are not."""
    name = letter * (32_767 // len(letter.encode()))
    response = messages.response_class(ApiKey.FIND_COORDINATOR)
    fields = {"error_code": 15, "node_id": -1, "host": "", "port": -1}
    single = response(error_message=f"no {name}", coordinators=[], **fields)
    _, decoded = messages.decode_response(10, 1, messages.encode_response(10, 1, 7, single))
    assert decoded.error_message.startswith(f"no {letter}") and decoded.error_message.endswith(f"{letter}...")
    assert len(decoded.error_message.encode()) in (32_766, 32_767)
    several = response(coordinators=[response.Coordinator(key=name, error_message=f"no {name}", **fields)])
    _, decoded = messages.decode_response(10, 4, messages.encode_response(10, 4, 7, several))
    assert (decoded.coordinators[0].key, decoded.coordinators[0].error_message) == (name, f"no {name}")
    topics = messages.response_class(ApiKey.DELETE_TOPICS)
    deleted = topics(responses=[topics.DeletableTopicResult(name=name, error_code=3, error_message=name + "!")])
    assert messages.decode_response(20, 3, messages.encode_response(20, 3, 7, deleted))[1].responses[0].name == name


def test_numbers_without_room_are_no_texts():
    """What cannot be encoded for another reason is told as before."""
    broken = messages.response_class(ApiKey.METADATA)(controller_id=1 << 40, brokers=[], topics=[], cluster_id=None)
    with pytest.raises(struct.error):
        messages.encode_response(3, 7, 1, broken)


def test_a_large_answer_leaves_no_buffer_behind():
    """Each thread that ever encoded one would keep as much: kafka-python's buffers only grow."""
    response = messages.response_class(ApiKey.METADATA)
    topics = [
        response.MetadataResponseTopic(error_code=0, name="t" * 200, is_internal=False, partitions=[])
        for _ in range(20_000)
    ]
    answer = response(brokers=[], controller_id=1, topics=topics)
    assert len(messages.encode_response(ApiKey.METADATA, 1, 1, answer)) > 4_000_000
    with EncodeBufferPool.acquire() as kept:
        assert len(kept.buf) <= 65_536


@pytest.mark.parametrize(
    ("api_key", "version", "fields"),
    [
        (ApiKey.FIND_COORDINATOR, 4, lambda text: {"key_type": 0, "coordinator_keys": [text]}),
        (ApiKey.METADATA, 9, lambda text: {"topics": [metadata_topic(text)], "allow_auto_topic_creation": False}),
        (ApiKey.DELETE_TOPICS, 4, lambda text: {"topic_names": [text], "timeout_ms": 1}),
        (ApiKey.DESCRIBE_CONFIGS, 4, lambda text: {"resources": [described(text)]}),
    ],
)
def test_a_text_has_no_more_bytes_than_an_int16_counts(api_key, version, fields):
    """Also where its length is a varint, as in Kafka: it is hashed, compared, quoted and kept."""

    def body(text):
        return encode_body(messages.request_class(api_key)(**fields(text)), version)

    assert messages.decode_request(messages.request_class(api_key), version, body("n" * 32_767)) is not None
    with pytest.raises(MalformedRequest, match="32768"):
        messages.decode_request(messages.request_class(api_key), version, body("n" * 32_768))


def metadata_topic(name):
    return messages.request_class(ApiKey.METADATA).MetadataRequestTopic(name=name)


def described(name):
    resource = messages.request_class(ApiKey.DESCRIBE_CONFIGS).DescribeConfigsResource
    return resource(resource_type=2, resource_name=name, configuration_keys=None)
