"""The bounds-checked decoder: what it refuses that kafka-python's own lets pass, and that it does so at once."""

from __future__ import annotations

import struct

import pytest

from cluster.protocol import primitives, schema_decoder
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import MalformedRequest
from cluster.protocol.messages import request_class, response_class
from tests.cluster.protocol.malformed import peak_bytes

Metadata = request_class(ApiKey.METADATA)


def decode(version, body, message_class=Metadata):
    return schema_decoder.decode(message_class, version, body)


@pytest.mark.parametrize(
    ("version", "body"),
    [
        (1, b"\x7f\xff\xff\xff"),
        (1, b"\x7f\xff\xff\xff" + bytes(100_000)),
        (1, b"\xff\xff\xff\xfe"),
        (9, b"\xff\xff\xff\xff\x0f"),
        (9, b"\xff\xff\xff\xff\x0f" + bytes(100_000)),
        (9, b"\xff" * 1_000_000),
        (1, struct.pack(">ih", 1, 0x7FFF) + b"short"),
        (9, b"\x02\xff\xff\xff\xff\x07"),
    ],
    ids=[
        "count",
        "count in a long frame",
        "negative",
        "compact count",
        "compact count in a long frame",
        "endless varint",
        "string",
        "compact string",
    ],
)
def test_a_length_that_lies_fails_without_memory(version, body):
    """Two thousand million declared elements cost nothing: no loop, no allocation."""

    def refuse() -> None:
        with pytest.raises(MalformedRequest):
            decode(version, body)

    refuse()
    assert peak_bytes(refuse) < 50_000


def test_elements_are_bounded_in_all_arrays_together(monkeypatch):
    """Many small arrays may not add up to what one large one may not be."""
    monkeypatch.setattr(schema_decoder, "MAX_ELEMENTS", 10)
    monkeypatch.setattr(primitives, "MAX_ELEMENTS", 10)
    request = request_class(ApiKey.LIST_OFFSETS)
    topic = request.ListOffsetsTopic
    partition = topic.ListOffsetsPartition

    def body(topics: int, partitions: int) -> bytes:
        entries = [partition(partition_index=index) for index in range(partitions)]
        return bytes(request(topics=[topic(name="t", partitions=entries)] * topics).encode(version=1))

    assert len(decode(1, body(2, 4), request).topics) == 2
    with pytest.raises(MalformedRequest, match="more than 10"):
        decode(1, body(3, 3), request)


@pytest.mark.parametrize("cut", range(1, 12))
def test_text_that_ends_beyond_the_frame(cut):
    """The last field of a message may not be shorter than it says; kafka-python returns what there is."""
    body = bytes(Metadata(topics=[Metadata.MetadataRequestTopic(name="some-topic")]).encode(version=1))
    with pytest.raises(MalformedRequest):
        decode(1, body[:-cut])


def test_null_where_the_schema_has_none():
    """A topic's name is not nullable before version 10: a handler never sees None where a string must be."""
    null_name = struct.pack(">ih", 1, -1)
    with pytest.raises(MalformedRequest):
        decode(1, null_name)
    with pytest.raises(MalformedRequest):
        decode(0, struct.pack(">i", -1))
    assert decode(1, struct.pack(">i", -1)).topics is None


def test_bytes_after_the_message():
    """What is left over is not ignored."""
    with pytest.raises(MalformedRequest, match="bytes after"):
        decode(1, struct.pack(">i", 0) + b"x")


def test_text_that_is_no_utf_8():
    """Refused like any other malformed field."""
    with pytest.raises(MalformedRequest):
        decode(1, struct.pack(">ih", 1, 2) + b"\xff\xfe")


def tagged(*tags: tuple[int, bytes]) -> bytes:
    """An InitProducerId request, version 2, ending in these tagged fields."""
    body = b"\x00" + struct.pack(">i", 1000) + primitives.write_uvarint(len(tags))
    return body + b"".join(
        primitives.write_uvarint(tag) + primitives.write_uvarint(len(value)) + value for tag, value in tags
    )


def test_unknown_tagged_fields_are_skipped():
    """KIP-482: a newer client may send fields that we do not know."""
    request = request_class(ApiKey.INIT_PRODUCER_ID)
    decoded = decode(2, tagged((3, b"what"), (700, b"ever" * 50)), request)
    assert decoded.transaction_timeout_ms == 1000


@pytest.mark.parametrize("tags", [((3, b""), (3, b"")), ((7, b"x"), (3, b"x"))])
def test_tags_ascend(tags):
    """Repeated or unordered tags are malformed."""
    with pytest.raises(MalformedRequest):
        decode(2, tagged(*tags), request_class(ApiKey.INIT_PRODUCER_ID))


def test_a_tagged_field_ends_where_it_says():
    """A known tagged field must take exactly its size."""
    response = response_class(ApiKey.API_VERSIONS)
    head = struct.pack(">h", 0) + b"\x01" + struct.pack(">i", 0)
    good = head + b"\x01\x01\x08" + struct.pack(">q", 42)
    assert decode(3, good, response).finalized_features_epoch == 42
    for size in (7, 9):
        with pytest.raises(MalformedRequest):
            decode(3, head + b"\x01\x01" + bytes((size,)) + bytes(size), response)


def test_a_tagged_field_in_each_of_many_structs_takes_linear_time():
    """A struct with tags costs its own bytes, not the rest of the frame: 20,000 of them decode in no time."""
    count = 20_000
    topic = bytes(16) + b"\x02t" + b"\x01\x05\x03abc"
    body = primitives.write_uvarint(count + 1) + topic * count + b"\x00\x00\x00" + b"\x00"
    assert len(decode(12, body[:-1]).topics) == count


def test_unset_fields_have_their_defaults():
    """Fields of other versions answer with the schema's default, as in kafka-python."""
    decoded = decode(1, struct.pack(">i", 0))
    assert decoded.allow_auto_topic_creation is True
    assert decoded.API_VERSION == 1
    decoded.with_header(correlation_id=1)
    assert decoded.header.correlation_id == 1
