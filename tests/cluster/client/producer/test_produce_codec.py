"""Produce from the client's side against the broker's codec of the same bytes (Kafka's ProduceRequest.json)."""

from __future__ import annotations

from contextlib import suppress
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.client.producer import produce_codec
from cluster.client.producer.actions import PartitionResult
from cluster.client.producer.produce_codec import ProduceAnswer, decode_response, encode_request
from cluster.protocol.errors import ErrorCode, ProtocolError
from cluster.protocol.produce import ProduceResult, build_response, parse_request

VERSIONS = st.integers(3, 9)
TOPICS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=40)
INT32 = st.integers(0, 2**31 - 1)
INT64 = st.integers(-1, 2**63 - 1)
PARTITIONS = st.tuples(TOPICS, INT32)


@given(
    VERSIONS,
    st.integers(-1, 1),
    INT32,
    st.dictionaries(PARTITIONS, st.binary(min_size=1), min_size=1, max_size=6),
    st.none() | TOPICS,
)
def test_a_broker_reads_the_request(
    version: int, acks: int, timeout_ms: int, batches: dict[tuple[str, int], bytes], transactional_id: str | None
) -> None:
    """All batches of all topics, each where it belongs, in every version; the batches themselves are not copied."""
    given_batches = [(topic, partition, data) for (topic, partition), data in batches.items()]
    parts = encode_request(version, acks, timeout_ms, given_batches, transactional_id)
    assert all(any(part is data for part in parts) for _topic, _partition, data in given_batches)
    request = parse_request(memoryview(b"".join(parts)), version)
    assert (request.transactional_id, request.acks, request.timeout_ms) == (transactional_id, acks, timeout_ms)
    read = {(each.topic, each.partition): bytes(each.records or b"") for each in request.partitions}
    assert read == batches


@given(VERSIONS, INT32, st.lists(st.builds(
    ProduceResult, TOPICS, INT32, st.sampled_from(ErrorCode), INT64, INT64, INT64,
    st.none() | TOPICS, st.lists(st.tuples(INT32, st.none() | TOPICS), max_size=2)), max_size=6))  # fmt: skip
def test_a_brokers_answer_is_read(version: int, throttle_ms: int, results: list[ProduceResult]) -> None:
    """Everything that the version carries; before version 6 the broker has waited itself."""
    frame = memoryview(build_response(version, 7, results, throttle_ms))
    answer = decode_response(version, frame)
    assert answer.throttle_time_ms == (throttle_ms if version >= 6 else 0)
    assert answer.results == {
        (each.topic, each.partition): PartitionResult(
            ErrorCode(each.error_code),
            each.base_offset,
            each.log_append_time_ms,
            each.log_start_offset if version >= 5 else -1,
            each.error_message if version >= 8 else None,
            tuple(each.record_errors) if version >= 8 else (),
        )
        for each in results
    }


@given(VERSIONS, st.data())
def test_a_broken_answer_is_refused(version: int, data: st.DataObject) -> None:
    """Whatever is cut off or changed: a protocol error or an answer, and nothing else."""
    whole = bytearray(build_response(version, 7, [ProduceResult("t", 1, 0, 5), ProduceResult("u", 0, 3)]))
    for _ in range(data.draw(st.integers(0, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    with suppress(ProtocolError):
        decode_response(version, memoryview(whole[:cut]))


@given(TOPICS, st.sampled_from(ErrorCode), INT64, INT32, st.integers(0, 255))
def test_the_short_way_says_what_the_long_one_says(
    topic: str, code: ErrorCode, offset: int, throttle_ms: int, other: int
) -> None:
    """Of the usual answer, and of one with any byte changed: the same results, or the same refusal."""
    frame = bytearray(build_response(9, 1, [ProduceResult(topic, 3, code, offset)], throttle_ms))
    usual = decode_response(9, memoryview(frame))
    assert usual == produce_codec._single_answer(memoryview(frame))
    for place, byte in enumerate(bytes(frame)):
        frame[place] = other
        assert _read(frame) == _read_the_long_way(frame)
        frame[place] = byte


def _read(frame: bytearray) -> ProduceAnswer | None:
    try:
        return decode_response(9, memoryview(frame))
    except ProtocolError:
        return None


def _read_the_long_way(frame: bytearray) -> ProduceAnswer | None:
    with patch.object(produce_codec, "_single_answer", return_value=None):
        return _read(frame)


def test_old_versions_have_other_records() -> None:
    """Below version 3 there are no batches of magic 2."""
    with pytest.raises(ValueError, match="version 2"):
        encode_request(2, -1, 0, [("t", 0, b"x")])
