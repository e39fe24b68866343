"""Produce (API key 0) from the client's side, versions 3-9: the request of finished batches, and what the answer says.

Owns the two layouts as a client needs them; a broker's are ``cluster.protocol.produce``'s (kafka-semantics 1.7). The
batches are not copied: they are parts of the frame. Does not own records, nor what an error means.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from cluster.client.producer.actions import PartitionResult, ProduceResults
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


class ProduceAnswer(NamedTuple):
    """What a broker says of each partition. ``throttle_time_ms`` is what is left to the client to wait."""

    results: ProduceResults
    throttle_time_ms: int


def encode_request(version: int, acks: int, timeout_ms: int, batches: Iterable[tuple[str, int, bytes]]) -> list[Bytes]:
    """The body of a request without transaction, in parts: (topic, partition, finished batch), grouped by topic.

    Raises ``ValueError`` for a version below 3, which has other records.
    """
    if version < PRODUCE_MIN_VERSION:
        raise ValueError(f"Produce version {version} cannot carry batches of magic 2")
    topics: dict[str, list[tuple[int, bytes]]] = {}
    for topic, partition, data in batches:
        topics.setdefault(topic, []).append((partition, data))
    if is_flexible(ApiKey.PRODUCE, version):
        return _flexible_request(acks, timeout_ms, topics)
    head = write_nullable_string(None) + _ACKS_TIMEOUT.pack(acks, timeout_ms) + INT32.pack(len(topics))
    parts: list[Bytes] = []
    for topic, entries in topics.items():
        head += _name(topic) + INT32.pack(len(entries))
        for partition, data in entries:
            parts += (head + _INDEX_SIZE.pack(partition, len(data)), data)
            head = b""
    return parts


def _flexible_request(acks: int, timeout_ms: int, topics: dict[str, list[tuple[int, bytes]]]) -> list[Bytes]:
    head = write_compact_nullable_string(None) + _ACKS_TIMEOUT.pack(acks, timeout_ms) + write_uvarint(len(topics) + 1)
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

    Of record errors (KIP-467) the text for the whole batch is kept; those of single records are passed over.
    """
    with refusing_malformed("Produce response"):
        position = skip_tags(frame, 4) if response_header_version(ApiKey.PRODUCE, version) > 0 else 4
        if is_flexible(ApiKey.PRODUCE, version):
            results, position = _flexible_results(frame, position)
        else:
            results, position = _plain_results(frame, position, version)
        (throttle_time_ms,) = INT32.unpack_from(frame, position)
    return ProduceAnswer(results, throttle_time_ms if version >= _THROTTLED_FROM else 0)


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
            if version >= 8:
                errors, position = read_count(frame, position, 6)
                for _ in range(errors):
                    _text, position = read_nullable_string(frame, position + 4)
                message, position = read_nullable_string(frame, position)
            log_start_offset = rest[0] if rest else -1
            results[topic, partition] = PartitionResult(
                ErrorCode.of(code), base_offset, log_append_time_ms, log_start_offset, message
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
            for _ in range(errors):
                _text, position = read_compact_nullable_string(frame, position + 4)
                position = skip_tags(frame, position)
            message, position = read_compact_nullable_string(frame, position)
            position = skip_tags(frame, position)
            results[topic, partition] = PartitionResult(
                ErrorCode.of(code), base_offset, log_append_time_ms, log_start_offset, message
            )
        position = skip_tags(frame, position)
    return results, position


@lru_cache(maxsize=1024)
def _name(topic: str) -> bytes:
    return write_nullable_string(topic)


@lru_cache(maxsize=1024)
def _compact_name(topic: str) -> bytes:
    return write_compact_nullable_string(topic)
