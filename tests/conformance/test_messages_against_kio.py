"""Every message to and from clients, in every version that is advertised, against kio and the plainest encoder.

kio's classes are generated from Apache's schemas independently of kafka-python's. It reads our bytes to their end,
finds the same values under the same names, and writes the same bytes, which we read to the same message.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.protocol import messages
from cluster.protocol.apis import INTER_BROKER, PRODUCE_MIN_VERSION, SUPPORTED, ApiKey
from tests.conformance.oracle import Kio, by_common_names, job
from tests.conformance.random_messages import draw_message, tree, written
from tests.support.examples import examples

IN_KIO_TOO = (ApiKey.ALTER_PARTITION, ApiKey.ALLOCATE_PRODUCER_IDS, ApiKey.WRITE_TXN_MARKERS)
#: Between brokers, what kio has too.
BETWEEN_BROKERS = {key: INTER_BROKER[key] for key in IN_KIO_TOO}
#: Of the broker's tables come those that it serves; the codecs of these are held to the same, served or not.
ALSO: dict[int, tuple[int, int]] = {
    21: (0, 2),  # DeleteRecords
    33: (0, 2),  # AlterConfigs
    35: (1, 4),  # DescribeLogDirs
    43: (0, 2),  # ElectLeaders
    44: (0, 1),  # IncrementalAlterConfigs
    45: (0, 0),  # AlterPartitionReassignments
    46: (0, 0),  # ListPartitionReassignments
    61: (0, 0),  # DescribeProducers
    24: (0, 4),  # AddPartitionsToTxn, with the version of brokers
}
WINDOWS = SUPPORTED | ALSO | BETWEEN_BROKERS
LAYOUTS = {
    api_key: [
        (version, side)
        # Of Produce, less is advertised than served: see PRODUCE_MIN_ADVERTISED.
        for version in range(PRODUCE_MIN_VERSION if api_key == ApiKey.PRODUCE else least, greatest + 1)
        for side in ("request", "response")
    ]
    for api_key, (least, greatest) in WINDOWS.items()
}
SEEDS = st.integers(0, (1 << 64) - 1)
pytestmark = pytest.mark.timeout(900)


def name_of(api_key: int) -> str:
    return messages.request_class(api_key).__name__.removesuffix("Request")


def class_of(api_key: int, side: str):
    return messages.request_class(api_key) if side == "request" else messages.response_class(api_key)


def decode(message_class, version: int, body: bytes):
    """By our own decoder, from a view as the network gives it."""
    return messages.schema_decoder.decode(message_class, version, memoryview(bytearray(body)))


@pytest.mark.parametrize("api_key", LAYOUTS, ids=name_of)
@examples(12)
@given(seed=SEEDS)
def test_messages(kio: Kio, api_key, seed):
    """Each layout of an API, a random message each: same bytes and same values, in both directions."""
    draw = Random(seed)
    drawn = []
    for version, side in LAYOUTS[api_key]:
        message_class = class_of(api_key, side)
        message = draw_message(message_class, version, draw)
        body = bytes(message.encode(version=version))
        assert body == written(message, version), (version, side, message)
        drawn.append((message_class, message, version, side, body))
    answers = kio.assert_same([job(api_key, version, side, body) for _, _, version, side, body in drawn])
    for (message_class, message, version, side, _), answer in zip(drawn, answers, strict=True):
        said = tree(message, version)
        assert by_common_names(answer["value"]) == by_common_names(said), (version, side)
        decoded = decode(message_class, version, bytes.fromhex(answer["hex"]))
        assert tree(decoded, version) == said, (version, side)
        assert_kafka_python_agrees(message_class, decoded, version, bytes.fromhex(answer["hex"]))


def assert_kafka_python_agrees(message_class, decoded, version: int, body: bytes) -> None:
    """Its own decoder finds the message that ours found. (It reads ApiVersions with an error as version 0.)"""
    if message_class is not messages.response_class(ApiKey.API_VERSIONS) or decoded.error_code == 0:
        assert decoded == message_class.decode(body, version=version), version


@pytest.mark.parametrize("api_key", INTER_BROKER, ids=name_of)
@given(seed=SEEDS)
def test_messages_between_brokers(api_key, seed):
    """Those that kio lacks too: encoded as plainly as can be, read back by ours and by kafka-python's decoder.

    That the layouts themselves are Kafka's is shown by the vectors of tests/cluster/protocol/test_interbroker.py.
    """
    draw, (version, _) = Random(seed), INTER_BROKER[api_key]
    for side in ("request", "response"):
        message_class = class_of(api_key, side)
        message = draw_message(message_class, version, draw)
        body = bytes(message.encode(version=version))
        assert body == written(message, version)
        decoded = decode(message_class, version, body)
        assert tree(decoded, version) == tree(message, version)
        assert_kafka_python_agrees(message_class, decoded, version, body)
        strange = decode(message_class, version, written(message, version, draw))
        assert tree(strange, version) == tree(message, version)


@pytest.mark.parametrize("api_key", LAYOUTS, ids=name_of)
@examples(12)
@given(seed=SEEDS)
def test_tagged_fields_of_the_future(api_key, seed):
    """KIP-482: unknown tagged fields in any struct are passed over, and the message says what it said without them.

    kio cannot judge this: it refuses them.
    """
    draw = Random(seed)
    for version, side in LAYOUTS[api_key]:
        message_class = class_of(api_key, side)
        message = draw_message(message_class, version, draw)
        decoded = decode(message_class, version, written(message, version, draw))
        assert tree(decoded, version) == tree(message, version), (version, side)
        assert bytes(decoded.encode(version=version)) == written(message, version)


def test_null_and_empty_are_two_things(kio: Kio):
    """Null topics ask Metadata for all of them, no topics for none: neither becomes the other, in any version."""
    request = messages.request_class(ApiKey.METADATA)
    jobs = []
    for version in range(1, SUPPORTED[ApiKey.METADATA][1] + 1):
        for topics in (None, []):
            body = bytes(request(topics=topics).encode(version=version))
            assert decode(request, version, body).topics == topics
            jobs.append(job(ApiKey.METADATA, version, "request", body))
    seen = [answer["value"]["topics"] for answer in kio.assert_same(jobs)]
    assert seen == [None, []] * SUPPORTED[ApiKey.METADATA][1]
