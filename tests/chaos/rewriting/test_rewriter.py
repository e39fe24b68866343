"""Addresses in answers: rewritten in every version that is offered, by the request that an answer belongs to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.rewriting.rewriter import AddressRewriter, CannotRewrite, ToldAddress, offered
from cluster.protocol import messages
from cluster.protocol.apis import SUPPORTED, ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.message_classes import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeClusterResponse,
    FindCoordinatorResponse,
    MetadataResponse,
)
from tests.cluster.protocol.strategies import INT32
from tests.cluster.protocol.strategies import messages as message_values

REWRITTEN = (ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER)
EVERY_VERSION = [(key, v) for key in REWRITTEN for v in range(SUPPORTED[key][0], SUPPORTED[key][1] + 1)]
HERE = "127.0.0.1"


class EveryBroker(dict):
    """A book that knows every broker."""

    def get(self, broker_id, _default=None):
        return address_of(broker_id)


def address_of(broker_id):
    return ToldAddress(HERE, broker_id & 0x7FFF)


def rewriter(book=None, strangers=None):
    return AddressRewriter(EveryBroker() if book is None else book, (strangers if strangers is not None else []).append)


def asked(api_key, version, correlation_id):
    """A request frame: what is behind its header is not looked at."""
    return messages.encode_request_header(api_key, version, correlation_id, "c") + b"\x00" * 8


def told(api_key, version, correlation_id, message, one=None):
    """What a client reads that asked and was answered so."""
    one = rewriter() if one is None else one
    assert one.request(asked(api_key, version, correlation_id)) is None
    frame = messages.encode_response(api_key, version, correlation_id, message)
    rewritten = one.response(frame)
    assert rewritten is not None
    return messages.decode_response(api_key, version, rewritten)


def named(api_key, message):
    """(broker id, host, port) of every address in an answer."""
    if api_key == ApiKey.METADATA:
        return [(each.node_id, each.host, each.port) for each in message.brokers]
    if api_key == ApiKey.DESCRIBE_CLUSTER:
        return [(each.broker_id, each.host, each.port) for each in message.brokers]
    found = [message, *(message.coordinators or ())]
    return [
        (each.node_id, each.host, each.port) for each in found if each.error_code == ErrorCode.NONE and each.node_id > 0
    ]


def without_addresses(api_key, message):
    """The same answer as plain data, with no address in it."""
    for each in (*getattr(message, "brokers", ()), *(getattr(message, "coordinators", None) or ()), message):
        if hasattr(each, "host"):
            each.host, each.port = "", 0
    return message


@pytest.mark.parametrize(("api_key", "version"), EVERY_VERSION)
@given(data=st.data())
def test_every_address_is_that_of_a_link(api_key, version, data):
    """In each version that is offered every broker has its link's address, and nothing else of the answer changes."""
    message = data.draw(message_values(messages.response_class(api_key), version))
    correlation_id = data.draw(INT32)
    original = messages.encode_response(api_key, version, correlation_id, message)
    _, expected = messages.decode_response(api_key, version, original)
    found_id, found = told(api_key, version, correlation_id, message)
    assert found_id == correlation_id
    for broker_id, host, port in named(api_key, found):
        assert (host, port) == address_of(broker_id)
    if api_key == ApiKey.FIND_COORDINATOR and version < 4 and expected.node_id < 0:
        assert (found.host, found.port) == (expected.host, expected.port)
    bare = [
        messages.encode_response(api_key, version, 0, without_addresses(api_key, each)) for each in (expected, found)
    ]
    assert bare[0] == bare[1]


@given(st.lists(st.sampled_from([*EVERY_VERSION, (ApiKey.HEARTBEAT, 4), (ApiKey.FETCH, 12)]), max_size=8), st.data())
def test_an_answer_is_matched_to_its_request_by_its_correlation_id(requests, data):
    """Of requests in flight together, each answer is read as what its own request asked for, in any order."""
    one = rewriter()
    for number, (api_key, version) in enumerate(requests):
        assert one.request(asked(api_key, version, number)) is None
    for number in data.draw(st.permutations(range(len(requests)))):
        api_key, version = requests[number]
        if api_key not in REWRITTEN:
            assert one.response(number.to_bytes(4, "big") + b"any bytes") is None
            continue
        message = data.draw(message_values(messages.response_class(api_key), version))
        rewritten = one.response(messages.encode_response(api_key, version, number, message))
        _, found = messages.decode_response(api_key, version, rewritten)
        assert all((host, port) == address_of(broker_id) for broker_id, host, port in named(api_key, found))


def test_a_broker_without_a_link_is_never_named():
    """Clients do not learn of a broker that is not in the book, and it is told: they would go around the links."""
    strangers = []
    book = {1: ToldAddress(HERE, 9001)}
    brokers = [
        MetadataResponse.MetadataResponseBroker(node_id=number, host="real", port=1, rack=None) for number in (1, 2)
    ]
    answer = MetadataResponse(brokers=brokers, cluster_id="c", controller_id=2, topics=[])
    _, found = told(ApiKey.METADATA, 12, 5, answer, rewriter(book, strangers))
    assert named(ApiKey.METADATA, found) == [(1, HERE, 9001)]
    described = [DescribeClusterResponse.DescribeClusterBroker(broker_id=3, host="real", port=1, rack=None)]
    answer = DescribeClusterResponse(error_code=0, error_message=None, cluster_id="c", brokers=described)
    _, found = told(ApiKey.DESCRIBE_CLUSTER, 0, 6, answer, rewriter(book, strangers))
    assert not found.brokers
    answer = FindCoordinatorResponse(error_code=0, node_id=4, host="real", port=1)
    _, found = told(ApiKey.FIND_COORDINATOR, 2, 7, answer, rewriter(book, strangers))
    assert (found.error_code, found.node_id, found.host) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, "")
    assert strangers == [2, 3, 4]


def test_clients_are_offered_only_what_can_be_rewritten():
    """A newer broker's versions are cut down to ours where answers name addresses, and left as they are elsewhere."""
    newest = [(key, 0, 99) for key in (0, 1, 3, 10, 12, 18, 60, 78, 79, 500)]
    entries = [ApiVersionsResponse.ApiVersion(api_key=k, min_version=low, max_version=high) for k, low, high in newest]
    found = {each.api_key: (each.min_version, each.max_version) for each in offered(entries)}
    assert found == {0: (0, 9), 1: (4, 12), 3: (0, 12), 10: (0, 4), 12: (0, 99), 18: (0, 3), 60: (0, 1), 500: (0, 99)}
    for version in range(SUPPORTED[ApiKey.API_VERSIONS][1] + 1):
        entries = [ApiVersionsResponse.ApiVersion(api_key=3, min_version=0, max_version=13)]
        _, message = told(ApiKey.API_VERSIONS, version, 1, ApiVersionsResponse(error_code=0, api_keys=entries))
        assert [(each.api_key, each.max_version) for each in message.api_keys] == [(3, 12)]


def test_a_version_that_was_not_offered_is_refused():
    """A request whose answer could not be rewritten never reaches the broker; ApiVersions is answered (KIP-511)."""
    one = rewriter()
    with pytest.raises(CannotRewrite, match="METADATA 13 was not offered"):
        one.request((3).to_bytes(2, "big") + (13).to_bytes(2, "big") + bytes(8))
    answer = one.request((18).to_bytes(2, "big") + (4).to_bytes(2, "big") + (77).to_bytes(4, "big") + bytes(8))
    correlation_id, message = messages.decode_response(ApiKey.API_VERSIONS, 4, answer)
    assert (correlation_id, message.error_code) == (77, ErrorCode.UNSUPPORTED_VERSION)
    assert [(each.api_key, each.max_version) for each in message.api_keys] == [(18, 3)]


def test_what_is_not_rewritten_passes_as_it_is():
    """Every other request and answer is passed on untouched, and so is the answer to a request no one remembers."""
    one = rewriter()
    request = messages.encode_request(ApiVersionsRequest(), 0, 9, "c")
    assert one.request(request) is None
    unsupported = messages.encode_unsupported_api_versions(9, (0, 2))
    assert one.response(unsupported) is None
    assert one.request(asked(ApiKey.PRODUCE, 9, 3)) is None
    assert one.response((3).to_bytes(4, "big") + b"whatever") is None
