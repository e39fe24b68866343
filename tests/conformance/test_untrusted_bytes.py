"""Whatever a peer sends, in every layout that is read: only the protocol's own error, and memory within bounds."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.protocol import fetch, messages, produce
from cluster.protocol.apis import INTER_BROKER, PRODUCE_MIN_VERSION, SUPPORTED, ApiKey, is_flexible
from cluster.protocol.errors import MalformedRequest
from cluster.protocol.message_classes import MetadataRequest
from cluster.protocol.primitives import write_uvarint
from tests.cluster.protocol.malformed import LIES, assert_only_malformed, peak_bytes
from tests.conformance.random_messages import draw_message, least_message, lists_of, written
from tests.support.examples import examples

WINDOWS = SUPPORTED | INTER_BROKER
#: Measured: 63 bytes for each byte received, in CreatePartitions, where two bytes are an object with a list.
MOST_BYTES_PER_BYTE = 80
#: What any frame may cost, however small.
MOST_BYTES_FOR_NOTHING = 16_000
pytestmark = pytest.mark.timeout(900)


def versions(api_key: ApiKey) -> range:
    least, greatest = WINDOWS[api_key]
    return range(PRODUCE_MIN_VERSION if api_key is ApiKey.PRODUCE else least, greatest + 1)


def decode(api_key: ApiKey, side: str, version: int, body: bytes) -> Any:
    """As a broker or a follower reads it."""
    view = memoryview(bytearray(body))
    if side == "response":
        return messages.schema_decoder.decode(messages.response_class(api_key), version, view)
    if api_key is ApiKey.PRODUCE:
        return produce.parse_request(view, version)
    if api_key is ApiKey.FETCH:
        return fetch.parse_request(view, version)
    return messages.decode_request(messages.request_class(api_key), version, view)


def damaged(data: bytes, draw: Random) -> bytes:
    """Cut, flipped, with lengths that lie, with bytes too many or too few."""
    for _ in range(draw.randint(1, 4)):
        at, lie = draw.randint(0, len(data)), draw.choice(LIES)
        match draw.randrange(6):
            case 0:
                data = data[:at]
            case 1 if at < len(data):
                data = data[:at] + bytes((data[at] ^ (1 << draw.randrange(8)),)) + data[at + 1 :]
            case 2:
                data = data[:at] + lie + data[at + len(lie) :]
            case 3:
                data = data[:at] + lie + data[at:]
            case 4:
                data = data[:at] + data[at + draw.randint(1, 6) :]
            case _:
                data = data[:at] + draw.randbytes(draw.randint(1, 9)) + data[at:]
    return data


@pytest.mark.parametrize("api_key", WINDOWS, ids=lambda key: key.name.lower())
@examples(12)
@given(seed=st.integers(0, (1 << 64) - 1))
def test_only_malformed_request_comes_out(api_key, seed):
    """Damaged messages, with and without strangers' tagged fields, and bytes that never were one."""
    draw = Random(seed)
    for version in versions(api_key):
        for side, class_of in (("request", messages.request_class), ("response", messages.response_class)):
            message = draw_message(class_of(api_key), version, draw)
            body = written(message, version, draw if draw.random() < 0.5 else None)
            for data in (damaged(body, draw), draw.randbytes(draw.randint(0, 60))):
                assert_only_malformed(partial(decode, api_key, side, version), data)


@pytest.mark.parametrize("api_key", WINDOWS, ids=lambda key: key.name.lower())
def test_memory_is_a_small_multiple_of_what_was_received(api_key):
    """Each list of the newest layout, plain and flexible, as long as its frame can declare: all elements are there."""
    message_class = messages.request_class(api_key)
    plain = [version for version in versions(api_key) if not is_flexible(api_key, version)]
    for version in {*plain[-1:], max(versions(api_key))}:
        for path in lists_of(message_class, version):
            for count in (30, 800):
                body = written(least_message(message_class, version, path, count), version)
                read = partial(decode, api_key, "request", version, body)
                read()
                cost = peak_bytes(read)
                assert cost < MOST_BYTES_FOR_NOTHING + MOST_BYTES_PER_BYTE * len(body), (version, path, len(body))


def test_strangers_tagged_fields_cost_nothing():
    """Tens of thousands of unknown tags are refused in a header; in a body they are passed over, not collected."""
    tags = write_uvarint(20_000) + b"".join(write_uvarint(1_000 + index) + b"\x00" for index in range(20_000))
    frame = b"\x00\x03\x00\x09\x00\x00\x00\x01\xff\xff" + tags

    def refused() -> None:
        with pytest.raises(MalformedRequest, match="20000 tagged fields"):
            messages.parse_request_header(memoryview(frame))

    assert peak_bytes(refused) < MOST_BYTES_FOR_NOTHING
    body = b"\x01\x00\x00\x00" + tags
    assert messages.decode_request(MetadataRequest, 9, memoryview(body)).topics == []
    assert peak_bytes(lambda: messages.decode_request(MetadataRequest, 9, memoryview(body))) < MOST_BYTES_FOR_NOTHING
