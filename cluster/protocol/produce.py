"""Produce (API key 0), versions 3-9, by hand: parsed without copying records, answered by joining packed structs.

Owns the request's and the response's layout. Does not look into the record batches.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from cluster.protocol.apis import PRODUCE_MIN_VERSION, SUPPORTED, ApiKey
from cluster.protocol.errors import MalformedRequest
from cluster.protocol.primitives import (
    INT32,
    MAX_PARTITIONS,
    MAX_TAGS,
    READ_ERRORS,
    check_total,
    cut_short,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_nullable_string,
    read_string,
    read_uvarint,
    skip_tags,
    write_compact_nullable_string,
    write_nullable_string,
    write_uvarint,
)

MAX_VERSION = SUPPORTED[ApiKey.PRODUCE][1]
_FLEXIBLE_FROM = 9

_ACKS_TIMEOUT = struct.Struct(">hi")
_INDEX_SIZE = struct.Struct(">ii")
#: Up to the length of the first topic's name (acks and timeout after the transactional id's length), and from its end.
_ONE_TOPIC = struct.Struct(">hhiih")
_ONE_PARTITION = struct.Struct(">iii")
#: The same from version 9 on: counts and sizes are one more than they say, and of one byte.
_ONE_COMPACT_TOPIC = struct.Struct(">BhiBB")
_ONE_COMPACT_PARTITION = struct.Struct(">Bi")
_COMPACT_NAME_AT = _ONE_COMPACT_TOPIC.size
_COMPACT_PARTITION_BYTES = _ONE_COMPACT_PARTITION.size
#: What ends the request: no tagged fields in the partition, in the topic and in the request.
_NO_TAGS = b"\x00\x00\x00"
#: The longest name of a topic. What is made for such names is kept for the next answer; a thousand of 32 KB are not.
_LONGEST_NAME = 249
_NAME_AT = _ONE_TOPIC.size
_PARTITION_BYTES = _ONE_PARTITION.size
#: index, error code, base offset, log append time (and from version 5 log start offset)
_RESULT_V3 = struct.Struct(">ihqq")
_RESULT_V5 = struct.Struct(">ihqqq")
#: The same and the throttle time, which follows the only result of a response.
_SINGLE_RESULT = struct.Struct(">ihqqqi")
#: From version 9 on: no record errors (1), no message, no tags of partition and topic, throttle time, no more tags.
_SINGLE_FLEXIBLE_RESULT = struct.Struct(">ihqqqBBBBiB")


class ProducePartition(NamedTuple):
    """The records for one partition: a view into the frame, or None for null."""

    topic: str
    partition: int
    records: memoryview | None


class ProduceRequest(NamedTuple):
    """``acks`` as sent, not checked. ``partitions`` in the order of the request."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    partitions: list[ProducePartition]


class ProduceResult(NamedTuple):
    """The answer for one partition; on an error the offsets stay -1. ``record_errors`` are (index, text) of records."""

    topic: str
    partition: int
    error_code: int
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    error_message: str | None = None
    record_errors: Sequence[tuple[int, str]] = ()


# The same as calling the classes, which costs a call more for every request.
_new_partition: Callable[[tuple[str, int, memoryview]], ProducePartition] = partial(tuple.__new__, ProducePartition)
_new_request: Callable[[tuple[Any, ...]], ProduceRequest] = partial(tuple.__new__, ProduceRequest)
_new_result: Callable[[tuple[Any, ...]], ProduceResult] = partial(tuple.__new__, ProduceResult)


def appended(
    topic: str, partition: int, error_code: int, base_offset: int, log_append_time_ms: int, log_start_offset: int
) -> ProduceResult:
    """The answer for a partition that took its records, or had them already."""
    return _new_result((topic, partition, error_code, base_offset, log_append_time_ms, log_start_offset, None, ()))


def parse_request(body: memoryview, version: int, most: int = MAX_PARTITIONS) -> ProduceRequest:
    """Parse the body of a request (after its header). Raises ``MalformedRequest``, and ``ManyPartitions`` for more than
    ``most`` topics and partitions.

    The records are views into ``body`` and valid as long as it is.
    """
    if not PRODUCE_MIN_VERSION <= version <= MAX_VERSION:
        raise MalformedRequest(f"Produce version {version}")
    try:
        single = parse_single(body) if version < _FLEXIBLE_FROM else parse_single_flexible(body)
        if single is not None:
            return single
        request, position = parse_flexible(body, most) if version >= _FLEXIBLE_FROM else parse_plain(body, most)
    except (*READ_ERRORS, MalformedRequest) as error:
        raise MalformedRequest(f"Produce: {error}") from error
    if position != len(body):
        raise MalformedRequest(f"{len(body) - position} bytes after a Produce request")
    return request


def parse_single(body: memoryview) -> ProduceRequest | None:
    """A request for one partition and without transaction, as most clients send it; None for any other.

    Raises ``UnicodeDecodeError``.
    """
    total = len(body)
    if total < _NAME_AT + _PARTITION_BYTES:
        return None
    id_size, acks, timeout_ms, topics, name_size = _ONE_TOPIC.unpack_from(body)
    name_end = _NAME_AT + name_size
    begin = name_end + _PARTITION_BYTES
    if id_size != -1 or topics != 1 or name_size < 0 or begin > total:
        return None
    partitions, partition, size = _ONE_PARTITION.unpack_from(body, name_end)
    if partitions != 1 or begin + size != total:
        return None
    name = str(body[_NAME_AT:name_end], "utf-8")
    return _new_request((None, acks, timeout_ms, [_new_partition((name, partition, body[begin:]))]))


def parse_single_flexible(body: memoryview) -> ProduceRequest | None:
    """The same from version 9 on, without tagged fields. Raises also ``IndexError`` and ``struct.error``."""
    id_size, acks, timeout_ms, topics, name_size = _ONE_COMPACT_TOPIC.unpack_from(body)
    if id_size != 0 or topics != 2 or not 0 < name_size < 0x80:
        return None
    name_end = _COMPACT_NAME_AT + name_size - 1
    if name_end + _COMPACT_PARTITION_BYTES >= len(body):
        return None
    partitions, partition = _ONE_COMPACT_PARTITION.unpack_from(body, name_end)
    if partitions != 2:
        return None
    size, begin = read_uvarint(body, name_end + _COMPACT_PARTITION_BYTES)
    end = begin + size - 1
    if size == 0 or body[end:] != _NO_TAGS:
        return None
    name = str(body[_COMPACT_NAME_AT:name_end], "utf-8")
    return _new_request((None, acks, timeout_ms, [_new_partition((name, partition, body[begin:end]))]))


def parse_plain(body: memoryview, most: int = MAX_PARTITIONS) -> tuple[ProduceRequest, int]:
    """Any request below version 9, and where it ends."""
    total = len(body)
    transactional_id, position = read_nullable_string(body, 0)
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(body, position)
    topic_count, position = read_count(body, position + 6, 6)
    check_total(topic_count, most)
    partitions: list[ProducePartition] = []
    for _ in range(topic_count):
        topic, position = read_string(body, position)
        count, position = read_count(body, position, 8)
        check_total(topic_count + len(partitions) + count, most)
        for _ in range(count):
            partition, size = _INDEX_SIZE.unpack_from(body, position)
            position += 8
            records: memoryview | None = None
            if size != -1:
                end = position + size
                if size < 0 or end > total:
                    raise MalformedRequest(f"records of {size} bytes where {total - position} are left")
                records = body[position:end]
                position = end
            partitions.append(ProducePartition(topic, partition, records))
    return ProduceRequest(transactional_id, acks, timeout_ms, partitions), position


def parse_flexible(body: memoryview, most: int = MAX_PARTITIONS) -> tuple[ProduceRequest, int]:
    """Any request from version 9 on, and where it ends."""
    total = len(body)
    transactional_id, position = read_compact_nullable_string(body, 0)
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(body, position)
    topic_count, position = read_compact_count(body, position + 6, 3)
    check_total(topic_count, most)
    partitions: list[ProducePartition] = []
    for _ in range(topic_count):
        topic, position = read_compact_string(body, position)
        count, position = read_compact_count(body, position, 6)
        check_total(topic_count + len(partitions) + count, most)
        for _ in range(count):
            (partition,) = INT32.unpack_from(body, position)
            size, position = read_uvarint(body, position + 4)
            records: memoryview | None = None
            if size:
                end = position + size - 1
                if end > total:
                    raise MalformedRequest(f"records of {size - 1} bytes where {total - position} are left")
                records = body[position:end]
                position = end
            position = position + 1 if body[position] == 0 else skip_tags(body, position, MAX_TAGS)
            partitions.append(ProducePartition(topic, partition, records))
        position = skip_tags(body, position, MAX_TAGS)
    position = skip_tags(body, position, MAX_TAGS)
    return ProduceRequest(transactional_id, acks, timeout_ms, partitions), position


def build_response(
    version: int, correlation_id: int, results: Sequence[ProduceResult], throttle_time_ms: int = 0
) -> bytes:
    """A response with its header, without the size prefix. Results are grouped by topic, in order of appearance."""
    flexible = version >= _FLEXIBLE_FROM
    if len(results) == 1 and (single := _single_response(version, correlation_id, results[0], throttle_time_ms)):
        return single
    topics: dict[str, list[bytes]] = {}
    for result in results:
        entry = _flexible_result(result) if flexible else _plain_result(result, version)
        topics.setdefault(result.topic, []).append(entry)
    parts = [INT32.pack(correlation_id)]
    if flexible:
        parts.append(b"\x00" + write_uvarint(len(topics) + 1))
        for topic, entries in topics.items():
            parts.append(write_compact_nullable_string(topic) + write_uvarint(len(entries) + 1))
            parts.extend(entries)
            parts.append(b"\x00")
        parts.append(INT32.pack(throttle_time_ms) + b"\x00")
    else:
        parts.append(INT32.pack(len(topics)))
        for topic, entries in topics.items():
            parts.append(write_nullable_string(topic) + INT32.pack(len(entries)))
            parts.extend(entries)
        parts.append(INT32.pack(throttle_time_ms))
    return b"".join(parts)


def _single_response(version: int, correlation_id: int, result: ProduceResult, throttle_time_ms: int) -> bytes | None:
    """The same bytes in one step, of the response that librdkafka usually gets: one partition, and no text."""
    topic, partition, code, base_offset, log_append_time_ms, log_start_offset, message, record_errors = result
    if len(topic) > _LONGEST_NAME:
        return None
    if version >= _FLEXIBLE_FROM and message is None and not record_errors:
        only = _SINGLE_FLEXIBLE_RESULT.pack(
            partition, code, base_offset, log_append_time_ms, log_start_offset, 1, 0, 0, 0, throttle_time_ms, 0
        )
        return INT32.pack(correlation_id) + _single_compact_topic(topic) + only
    if 5 <= version < 8:
        only = _SINGLE_RESULT.pack(partition, code, base_offset, log_append_time_ms, log_start_offset, throttle_time_ms)
        return INT32.pack(correlation_id) + _single_topic(topic) + only
    return None


@lru_cache(maxsize=1024)
def _single_topic(topic: str) -> bytes:
    """One topic, its name, and the count of its partitions, which is one."""
    return INT32.pack(1) + write_nullable_string(topic) + INT32.pack(1)


@lru_cache(maxsize=1024)
def _single_compact_topic(topic: str) -> bytes:
    """The end of a flexible response's header, one topic, its name, and the count of its partitions, which is one."""
    return b"\x00\x02" + write_compact_nullable_string(topic) + b"\x02"


def _plain_result(result: ProduceResult, version: int) -> bytes:
    _, partition, error_code, base_offset, log_append_time_ms, log_start_offset, message, record_errors = result
    if version < 5:
        return _RESULT_V3.pack(partition, error_code, base_offset, log_append_time_ms)
    head = _RESULT_V5.pack(partition, error_code, base_offset, log_append_time_ms, log_start_offset)
    if version < 8:
        return head
    errors = b"".join(INT32.pack(index) + write_nullable_string(text) for index, text in record_errors)
    # It may quote a name that is as long as a text can be.
    return head + INT32.pack(len(record_errors)) + errors + write_nullable_string(message and cut_short(message))


def _flexible_result(result: ProduceResult) -> bytes:
    _, partition, error_code, base_offset, log_append_time_ms, log_start_offset, message, record_errors = result
    head = _RESULT_V5.pack(partition, error_code, base_offset, log_append_time_ms, log_start_offset)
    if record_errors:
        head += write_uvarint(len(record_errors) + 1)
        for index, text in record_errors:
            head += INT32.pack(index) + write_compact_nullable_string(text) + b"\x00"
    else:
        head += b"\x01"
    return head + write_compact_nullable_string(message) + b"\x00"
