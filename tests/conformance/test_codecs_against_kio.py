"""Our hand-written codecs, of Produce, Fetch and record batches, against kio's and kafka-python's, in every version."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from cluster.protocol import fetch, messages, produce
from cluster.protocol.apis import PRODUCE_MIN_VERSION, ApiKey
from cluster.protocol.batch import parse_header
from cluster.protocol.fetch_request import MAX_VERSION, MIN_VERSION
from cluster.protocol.records import NewRecord, Record, build_batch, decode_records
from tests.cluster.protocol.strategies import (
    FETCH_REQUESTS,
    FETCH_RESULTS,
    INT16,
    INT32,
    PRODUCE_REQUESTS,
    PRODUCE_RESULTS,
    RECORDS,
)
from tests.conformance.oracle import Kio, by_common_names, job
from tests.conformance.random_messages import LAST_ERROR_CODE, LAST_TIME_MS, tree

FETCH_VERSIONS = range(MIN_VERSION, MAX_VERSION + 1)
PRODUCE_VERSIONS = range(PRODUCE_MIN_VERSION, produce.MAX_VERSION + 1)
pytestmark = pytest.mark.timeout(900)


def known_error(result: Any) -> Any:
    """With an error code that kio has, too."""
    return result._replace(error_code=result.error_code % (LAST_ERROR_CODE + 2) - 1)


def assert_all_agree(kio: Kio, api_key: ApiKey, side: str, bodies: dict[int, bytes]) -> None:
    """kio writes the same bytes, and finds in them what kafka-python's decoder finds."""
    answers = kio.assert_same([job(api_key, version, side, body) for version, body in bodies.items()])
    message_class = messages.request_class(api_key) if side == "request" else messages.response_class(api_key)
    for (version, body), answer in zip(bodies.items(), answers, strict=True):
        native = message_class.decode(body, version=version)
        assert by_common_names(answer["value"]) == by_common_names(tree(native, version)), version


def produce_request(request: produce.ProduceRequest, version: int) -> bytes:
    """The body, by kafka-python: our brokers only read it."""
    message_class = messages.request_class(ApiKey.PRODUCE)
    topic_class = message_class.TopicProduceData
    topics: dict[str, list] = {}
    for topic, partition, records in request.partitions:
        topics.setdefault(topic, []).append(topic_class.PartitionProduceData(index=partition, records=records))
    message = message_class(
        transactional_id=request.transactional_id,
        acks=request.acks,
        timeout_ms=request.timeout_ms,
        topic_data=[topic_class(name=name, partition_data=entries) for name, entries in topics.items()],
    )
    return bytes(message.encode(version=version))


@given(PRODUCE_REQUESTS)
def test_produce_requests(kio: Kio, request):
    """Records null, empty and of any bytes: ours, kafka-python's and kio's readers find the same."""
    bodies = {version: produce_request(request, version) for version in PRODUCE_VERSIONS}
    assert_all_agree(kio, ApiKey.PRODUCE, "request", bodies)
    for version, body in bodies.items():
        assert produce.parse_request(memoryview(body), version) == request


@given(PRODUCE_RESULTS, INT32)
def test_produce_responses(kio: Kio, results, throttle_time_ms):
    """What we build is what both would have written."""
    results = [
        known_error(result)._replace(log_append_time_ms=result.log_append_time_ms % LAST_TIME_MS) for result in results
    ]
    bodies = {}
    for version in PRODUCE_VERSIONS:
        frame = produce.build_response(version, 1, results, throttle_time_ms)
        bodies[version] = frame[5 if version >= 9 else 4 :]
    assert_all_agree(kio, ApiKey.PRODUCE, "response", bodies)


@given(FETCH_REQUESTS)
def test_fetch_requests(kio: Kio, request):
    """What our followers send is read by both, and by our leaders."""
    bodies = {}
    for version in FETCH_VERSIONS:
        frame = fetch.build_request(version, 1, "me", request)
        bodies[version] = frame[messages.parse_request_header(frame).body_offset :]
        parsed = fetch.parse_request(memoryview(bodies[version]), version)
        assert fetch.build_request(version, 1, "me", parsed) == frame
    assert_all_agree(kio, ApiKey.FETCH, "request", bodies)


@given(FETCH_RESULTS, INT32, INT32)
def test_fetch_responses(kio: Kio, results, session_id, throttle_time_ms):
    """Aborted transactions null and empty, divergence and the current leader as tagged fields."""
    bodies = {}
    for version in FETCH_VERSIONS:
        frame = b"".join(fetch.build_response(version, 1, 0, session_id, map(known_error, results), throttle_time_ms))
        bodies[version] = frame[5 if version >= 12 else 4 :]
        parsed = fetch.parse_response(memoryview(frame), version)
        again = fetch.build_response(
            version, 1, 0, session_id if version >= 7 else 0, parsed.partitions, throttle_time_ms
        )
        assert b"".join(again) == frame
    assert_all_agree(kio, ApiKey.FETCH, "response", bodies)


BATCHES = st.fixed_dictionaries(
    {
        "base_offset": st.integers(0, (1 << 63) - 1_000),
        "leader_epoch": INT32,
        "producer_id": st.integers(-1, (1 << 63) - 1),
        "producer_epoch": INT16,
        "base_sequence": INT32,
        "transactional": st.booleans(),
        "control": st.booleans(),
    }
)


@given(RECORDS, BATCHES)
def test_batches_against_kio(kio: Kio, records, fields):
    """Header and records, by value and by bytes. (kio knows no compression, and whole seconds only.)"""
    records = [record._replace(timestamp=record.timestamp % LAST_TIME_MS // 1000 * 1000) for record in records]
    batch = build_batch(records, **fields)
    (answer,) = kio.assert_same([{"batch": batch.hex()}])
    value = answer["value"]
    header = parse_header(batch)._asdict()
    header |= {"partition_leader_epoch": header.pop("leader_epoch")}
    count = header.pop("record_count")
    assert {name: value[name] for name in header if name != "magic"} == {
        name: field for name, field in header.items() if name != "magic"
    }
    found = [
        Record(
            item["offset"],
            item["timestamp"],
            _bytes(item["key"]),
            _bytes(item["value"]),
            tuple((bytes.fromhex(entry["key"]).decode(), _bytes(entry["value"])) for entry in item["headers"]),
        )
        for item in value["records"]
    ]
    assert found == decode_records(batch)
    assert len(found) == count


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


@given(RECORDS, st.integers(0, 4), BATCHES)
def test_batches_of_ours_against_kafka_python(records, codec, fields):
    """Its reader finds our records in every codec, and a good checksum."""
    batch = DefaultRecordBatch(build_batch(records, codec=codec, **fields))
    assert batch.validate_crc()
    assert (batch.base_offset, batch.producer_id, batch.producer_epoch, batch.base_sequence) == (
        fields["base_offset"], fields["producer_id"], fields["producer_epoch"], fields["base_sequence"],
    )  # fmt: skip
    assert (batch.is_transactional, batch.is_control_batch) == (fields["transactional"], fields["control"])
    if not fields["control"]:
        assert [(item.timestamp, item.key, item.value, tuple(item.headers)) for item in batch] == [
            (record.timestamp, record.key, record.value, tuple(record.headers)) for record in records
        ]


@given(RECORDS, st.integers(0, 4), st.booleans())
def test_batches_of_kafka_python_against_ours(records, codec, transactional):
    """Our reader finds its records, in every codec."""
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=transactional, producer_id=7, producer_epoch=1,
        base_sequence=2, batch_size=1 << 20,
    )  # fmt: skip
    for index, record in enumerate(records):
        builder.append(index, record.timestamp, record.key, record.value, list(record.headers))
    batch = bytes(builder.build())
    assert [NewRecord(*found[1:]) for found in decode_records(batch)] == records
    header = parse_header(batch)
    assert (header.is_transactional, header.producer_id) == (transactional, 7)
    # It leaves a batch as it is that would not become smaller.
    assert header.codec in (codec, 0)
