"""Produce (API key 0) from the client's side, versions 3-9: the request of finished batches, and what the answer says.

Owns the two layouts as a client needs them; a broker's are ``cluster.protocol.produce``'s (ProduceRequest.json). The
batches are not copied: they are parts of the frame. Does not own records, nor what an error means.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

from cluster.client.producer.actions import PartitionResult, ProduceResults, RecordTexts
from cluster.protocol.apis import PRODUCE_MIN_VERSION, ApiKey, is_flexible, response_header_version
from cluster.protocol.errors import ErrorCode
from cluster.protocol.primitives import (
    INT32,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_nullable_string,
    read_string,
    refusing_malformed,
    skip_tags,
    write_compact_nullable_string,
    write_nullable_string,
    write_uvarint,
)
from cluster.seams.storage import Bytes

#: From this version on a client waits for the throttle time itself (KIP-219).
_THROTTLED_FROM = 6
_ACKS_TIMEOUT = struct.Struct(">hi")
_INDEX_SIZE = struct.Struct(">ii")
#: index, error code, base offset, log append time; and log start offset from version 5 on.
_RESULT_V3 = struct.Struct(">ihqq")
_RESULT_V5 = struct.Struct(">ihqqq")
_NO_TAGS = b"\x00"
#: A flexible answer of one partition behind its topic: the count of partitions, what _RESULT_V5 has, what else may be
#: said (record errors, message, tags of partition and topic), throttle time, tags.
_SINGLE_RESULT = struct.Struct(">Bihqqq4siB")
_NOTHING_ELSE = b"\x01\x00\x00\x00"
#: The bytes before the topic's name: correlation id, tags, the count of topics, the length of the name.
_SINGLE_NAME_AT = 7
#: The tags of the last partition, its topic and the request.
_SINGLE_TAIL = 3 * _NO_TAGS


class ProduceAnswer(NamedTuple):
    """What a broker says about each partition. ``throttle_time_ms`` is what is left to the client to wait."""

    results: ProduceResults
    throttle_time_ms: int


def encode_request(
    version: int,
    acks: int,
    timeout_ms: int,
    batches: Sequence[tuple[str, int, bytes]],
    transactional_id: str | None = None,
) -> list[Bytes]:
    """The body of a request, in parts: (topic, partition, finished batch), grouped by topic.

    Raises ``ValueError`` for a version below 3, which has other records.
    """
    if version < PRODUCE_MIN_VERSION:
        raise ValueError(f"Produce version {version} cannot carry batches of magic 2")
    if len(batches) == 1 and is_flexible(ApiKey.PRODUCE, version):
        # The usual case, as below, with all of the head that does not change made once.
        ((topic, partition, data),) = batches
        head = _single_head(transactional_id, acks, timeout_ms, topic)
        head += INT32.pack(partition) + write_uvarint(len(data) + 1)
        return [head, data, _SINGLE_TAIL]
    topics: dict[str, list[tuple[int, bytes]]] = {}
    for topic, partition, data in batches:
        topics.setdefault(topic, []).append((partition, data))
    if is_flexible(ApiKey.PRODUCE, version):
        return _flexible_request(transactional_id, acks, timeout_ms, topics)
    head = write_nullable_string(transactional_id) + _ACKS_TIMEOUT.pack(acks, timeout_ms) + INT32.pack(len(topics))
    parts: list[Bytes] = []
    for topic, entries in topics.items():
        head += _name(topic) + INT32.pack(len(entries))
        for partition, data in entries:
            parts += (head + _INDEX_SIZE.pack(partition, len(data)), data)
            head = b""
    return parts


def _flexible_request(
    transactional_id: str | None, acks: int, timeout_ms: int, topics: dict[str, list[tuple[int, bytes]]]
) -> list[Bytes]:
    head = write_compact_nullable_string(transactional_id)
    head += _ACKS_TIMEOUT.pack(acks, timeout_ms) + write_uvarint(len(topics) + 1)
    parts: list[Bytes] = []
    for topic, entries in topics.items():
        head += _compact_name(topic) + write_uvarint(len(entries) + 1)
        for partition, data in entries:
            parts += (head + INT32.pack(partition) + write_uvarint(len(data) + 1), data)
            head = _NO_TAGS
        # The last partition's tags stand before the topic's.
        head += _NO_TAGS
    parts.append(head + _NO_TAGS)
    return parts


def decode_response(version: int, frame: memoryview) -> ProduceAnswer:
    """The answer in a frame. Raises ``MalformedRequest``.

    From version 8 on it may name records of a batch that is refused, and say what is wrong with each (KIP-467).
    """
    if is_flexible(ApiKey.PRODUCE, version) and (answer := _single_answer(frame)) is not None:
        return answer
    with refusing_malformed("Produce response"):
        position = skip_tags(frame, 4) if response_header_version(ApiKey.PRODUCE, version) > 0 else 4
        if is_flexible(ApiKey.PRODUCE, version):
            results, position = _flexible_results(frame, position)
        else:
            results, position = _plain_results(frame, position, version)
        (throttle_time_ms,) = INT32.unpack_from(frame, position)
    return ProduceAnswer(results, throttle_time_ms if version >= _THROTTLED_FROM else 0)


def _single_answer(frame: memoryview) -> ProduceAnswer | None:
    """The same in one step, of the answer that is usual: flexible, one partition, and nothing said but the result."""
    name_bytes = len(frame) - _SINGLE_NAME_AT - _SINGLE_RESULT.size
    if not 0 <= name_bytes < 0x7F or frame[4:_SINGLE_NAME_AT] != bytes((0, 2, name_bytes + 1)):
        return None
    name_end = _SINGLE_NAME_AT + name_bytes
    (
        count, partition, code, base_offset, log_append_time_ms, log_start_offset, rest, throttle_time_ms, tags,
    ) = _SINGLE_RESULT.unpack_from(frame, name_end)  # fmt: skip
    if count != 2 or rest != _NOTHING_ELSE or tags != 0:
        return None
    try:
        topic = str(frame[_SINGLE_NAME_AT:name_end], "utf-8")
    except UnicodeDecodeError:
        return None
    error_code = ErrorCode.NONE if code == 0 else ErrorCode.of(code)
    result = PartitionResult(error_code, base_offset, log_append_time_ms, log_start_offset)
    return ProduceAnswer({(topic, partition): result}, throttle_time_ms)


@lru_cache(maxsize=16)
def response_decoder(version: int) -> Callable[[memoryview], ProduceAnswer]:
    """``decode_response`` of that version."""
    return partial(decode_response, version)


def _plain_results(frame: memoryview, position: int, version: int) -> tuple[ProduceResults, int]:
    results: ProduceResults = {}
    layout = _RESULT_V3 if version < 5 else _RESULT_V5
    topic_count, position = read_count(frame, position, 6)
    for _ in range(topic_count):
        topic, position = read_string(frame, position)
        count, position = read_count(frame, position, layout.size)
        for _ in range(count):
            partition, code, base_offset, log_append_time_ms, *rest = layout.unpack_from(frame, position)
            position += layout.size
            message = None
            record_errors: RecordTexts = ()
            if version >= 8:
                errors, position = read_count(frame, position, 6)
                if errors:
                    record_errors, position = _plain_record_errors(frame, position, errors)
                message, position = read_nullable_string(frame, position)
            log_start_offset = rest[0] if rest else -1
            results[topic, partition] = PartitionResult(
                ErrorCode.of(code), base_offset, log_append_time_ms, log_start_offset, message, record_errors
            )
    return results, position


def _flexible_results(frame: memoryview, position: int) -> tuple[ProduceResults, int]:
    results: ProduceResults = {}
    topic_count, position = read_compact_count(frame, position, 3)
    for _ in range(topic_count):
        topic, position = read_compact_string(frame, position)
        count, position = read_compact_count(frame, position, _RESULT_V5.size + 3)
        for _ in range(count):
            partition, code, base_offset, log_append_time_ms, log_start_offset = _RESULT_V5.unpack_from(frame, position)
            errors, position = read_compact_count(frame, position + _RESULT_V5.size, 6)
            record_errors: RecordTexts = ()
            if errors:
                record_errors, position = _flexible_record_errors(frame, position, errors)
            message, position = read_compact_nullable_string(frame, position)
            position = skip_tags(frame, position)
            results[topic, partition] = PartitionResult(
                ErrorCode.of(code), base_offset, log_append_time_ms, log_start_offset, message, record_errors
            )
        position = skip_tags(frame, position)
    return results, position


def _plain_record_errors(frame: memoryview, position: int, count: int) -> tuple[RecordTexts, int]:
    errors: list[tuple[int, str | None]] = []
    for _ in range(count):
        (index,) = INT32.unpack_from(frame, position)
        text, position = read_nullable_string(frame, position + 4)
        errors.append((index, text))
    return tuple(errors), position


def _flexible_record_errors(frame: memoryview, position: int, count: int) -> tuple[RecordTexts, int]:
    errors: list[tuple[int, str | None]] = []
    for _ in range(count):
        (index,) = INT32.unpack_from(frame, position)
        text, position = read_compact_nullable_string(frame, position + 4)
        position = skip_tags(frame, position)
        errors.append((index, text))
    return tuple(errors), position


@lru_cache(maxsize=1024)
def _single_head(transactional_id: str | None, acks: int, timeout_ms: int, topic: str) -> bytes:
    """What comes before the only partition's index."""
    return (
        write_compact_nullable_string(transactional_id)
        + _ACKS_TIMEOUT.pack(acks, timeout_ms)
        + b"\x02"
        + _compact_name(topic)
        + b"\x02"
    )


@lru_cache(maxsize=1024)
def _name(topic: str) -> bytes:
    return write_nullable_string(topic)


@lru_cache(maxsize=1024)
def _compact_name(topic: str) -> bytes:
    return write_compact_nullable_string(topic)
