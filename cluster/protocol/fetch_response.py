"""Fetch responses (API key 1), versions 4-12, by hand: records are never copied here, neither out nor in.

Owns the layout, both ways. Does not own what is read, nor the record batches inside.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from cluster.protocol.errors import MalformedRequest
from cluster.protocol.fetch_request import MAX_VERSION, MIN_VERSION
from cluster.protocol.primitives import (
    INT16,
    INT32,
    MAX_ELEMENTS,
    READ_ERRORS,
    check_count,
    read_compact_count,
    read_compact_string,
    read_count,
    read_slice,
    read_string,
    read_tags,
    read_uvarint,
    skip_tags,
    write_compact_nullable_string,
    write_nullable_string,
    write_uvarint,
)
from cluster.seams.storage import Payload, payload_size

_FLEXIBLE_FROM = 12

#: partition, error code, high watermark, last stable offset, [log start offset from 5]
_RESULT_V4 = struct.Struct(">ihqq")
_RESULT_V5 = struct.Struct(">ihqqq")
_ABORTED = struct.Struct(">qq")
_EPOCH_END = struct.Struct(">iq")
_LEADER = struct.Struct(">ii")

_TAG_DIVERGING_EPOCH = 0
_TAG_CURRENT_LEADER = 1
_KNOWN_TAGS = (_TAG_DIVERGING_EPOCH, _TAG_CURRENT_LEADER)


class FetchResult(NamedTuple):
    """The answer for one partition.

    ``records`` None is sent as empty, never as null. ``diverging`` is (epoch, end offset), ``current_leader`` is
    (leader id, leader epoch), both from version 12. ``aborted`` is (producer id, first offset) of each aborted
    transaction, or None for read_uncommitted.
    """

    topic: str
    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    records: Payload | None = None
    diverging: tuple[int, int] | None = None
    current_leader: tuple[int, int] | None = None
    aborted: list[tuple[int, int]] | None = None
    preferred_read_replica: int = -1


class FetchResponse(NamedTuple):
    """A parsed response. Records of ``partitions`` are views into the frame, empty where there are none."""

    correlation_id: int
    error_code: int
    session_id: int
    throttle_time_ms: int
    partitions: list[FetchResult]


def build_response(
    version: int,
    correlation_id: int,
    error_code: int,
    session_id: int,
    partitions: Iterable[FetchResult],
    throttle_time_ms: int = 0,
) -> list[Payload]:
    """A response with its header, without the size prefix, as parts to be sent one after the other.

    Records are passed on as they are, so a ``FileRange`` can go by sendfile. Results are grouped by topic, in order
    of appearance. Below version 7 there is no place for ``error_code`` and ``session_id``.
    """
    flexible = version >= _FLEXIBLE_FROM
    topics: dict[str, list[FetchResult]] = {}
    for result in partitions:
        topics.setdefault(result.topic, []).append(result)
    parts: list[Payload] = []
    head = bytearray(INT32.pack(correlation_id))
    if flexible:
        head += b"\x00"
    head += INT32.pack(throttle_time_ms)
    if version >= 7:
        head += INT16.pack(error_code) + INT32.pack(session_id)
    head += write_uvarint(len(topics) + 1) if flexible else INT32.pack(len(topics))
    for topic, results in topics.items():
        if flexible:
            head += write_compact_nullable_string(topic) + write_uvarint(len(results) + 1)
        else:
            head += write_nullable_string(topic) + INT32.pack(len(results))
        for result in results:
            head += _result_head(result, version)
            records = result.records
            if records is not None and (not isinstance(records, bytes) or records):
                parts.append(bytes(head))
                parts.append(records)
                head.clear()
            if flexible:
                head += _result_tags(result)
        if flexible:
            head += b"\x00"
    if flexible:
        head += b"\x00"
    if head:
        parts.append(bytes(head))
    return parts


def _result_head(result: FetchResult, version: int) -> bytes:
    """Everything of a partition's answer up to the length of its records, inclusive."""
    flexible = version >= _FLEXIBLE_FROM
    fields = (result.partition, result.error_code, result.high_watermark, result.last_stable_offset)
    head = _RESULT_V5.pack(*fields, result.log_start_offset) if version >= 5 else _RESULT_V4.pack(*fields)
    aborted = result.aborted
    if aborted is None:
        head += b"\x00" if flexible else b"\xff\xff\xff\xff"
    elif flexible:
        head += write_uvarint(len(aborted) + 1) + b"".join(_ABORTED.pack(*entry) + b"\x00" for entry in aborted)
    else:
        head += INT32.pack(len(aborted)) + b"".join(_ABORTED.pack(*entry) for entry in aborted)
    if version >= 11:
        head += INT32.pack(result.preferred_read_replica)
    records = result.records
    size = 0 if records is None else payload_size((records,))
    return head + (write_uvarint(size + 1) if flexible else INT32.pack(size))


def _result_tags(result: FetchResult) -> bytes:
    if result.diverging is None and result.current_leader is None:
        return b"\x00"
    tags: list[bytes] = []
    # A struct inside a tagged field ends with its own, empty, tagged fields.
    if result.diverging is not None:
        value = _EPOCH_END.pack(*result.diverging) + b"\x00"
        tags.append(bytes((_TAG_DIVERGING_EPOCH, len(value))) + value)
    if result.current_leader is not None:
        value = _LEADER.pack(*result.current_leader) + b"\x00"
        tags.append(bytes((_TAG_CURRENT_LEADER, len(value))) + value)
    return bytes((len(tags),)) + b"".join(tags)


def parse_response(frame: memoryview, version: int) -> FetchResponse:
    """Parse a response frame, header included. Raises ``MalformedRequest``.

    The records are views into ``frame`` and valid as long as it is.
    """
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise MalformedRequest(f"Fetch version {version}")
    try:
        response, position = _parse_response(frame, version)
    except READ_ERRORS as error:
        raise MalformedRequest(f"Fetch response: {error}") from error
    if position != len(frame):
        raise MalformedRequest(f"{len(frame) - position} bytes after a Fetch response")
    return response


def _parse_response(frame: memoryview, version: int) -> tuple[FetchResponse, int]:
    flexible = version >= _FLEXIBLE_FROM
    (correlation_id,) = INT32.unpack_from(frame, 0)
    position = skip_tags(frame, 4) if flexible else 4
    (throttle_time_ms,) = INT32.unpack_from(frame, position)
    position += 4
    error_code = session_id = 0
    if version >= 7:
        (error_code,) = INT16.unpack_from(frame, position)
        (session_id,) = INT32.unpack_from(frame, position + 2)
        position += 6
    topic_count, position = read_compact_count(frame, position, 3) if flexible else read_count(frame, position, 6)
    partitions: list[FetchResult] = []
    for _ in range(topic_count):
        topic, position = read_compact_string(frame, position) if flexible else read_string(frame, position)
        count, position = read_compact_count(frame, position, 4) if flexible else read_count(frame, position, 4)
        if len(partitions) + count > MAX_ELEMENTS:
            raise MalformedRequest(f"more than {MAX_ELEMENTS} partitions")
        for _ in range(count):
            result, position = _parse_result(frame, position, version, topic)
            partitions.append(result)
        if flexible:
            position = skip_tags(frame, position)
    if flexible:
        position = skip_tags(frame, position)
    return FetchResponse(correlation_id, error_code, session_id, throttle_time_ms, partitions), position


def _parse_result(frame: memoryview, position: int, version: int, topic: str) -> tuple[FetchResult, int]:
    flexible = version >= _FLEXIBLE_FROM
    log_start_offset = preferred_read_replica = -1
    if version >= 5:
        partition, error_code, high_watermark, stable, log_start_offset = _RESULT_V5.unpack_from(frame, position)
        position += _RESULT_V5.size
    else:
        partition, error_code, high_watermark, stable = _RESULT_V4.unpack_from(frame, position)
        position += _RESULT_V4.size
    aborted, position = _parse_aborted(frame, position, flexible)
    if version >= 11:
        (preferred_read_replica,) = INT32.unpack_from(frame, position)
        position += 4
    if flexible:
        size, position = read_uvarint(frame, position)
        size -= 1
    else:
        (size,) = INT32.unpack_from(frame, position)
        position += 4
    # Null and empty records are the same to a reader.
    records, position = read_slice(frame, position, 0 if size == -1 else size, "records")
    diverging: tuple[int, int] | None = None
    current_leader: tuple[int, int] | None = None
    if flexible:
        tags, position = read_tags(frame, position, _KNOWN_TAGS)
        for tag, value in tags:
            if tag == _TAG_DIVERGING_EPOCH:
                diverging = _EPOCH_END.unpack_from(value)
            else:
                current_leader = _LEADER.unpack_from(value)
    result = FetchResult(
        topic,
        partition,
        error_code,
        high_watermark,
        stable,
        log_start_offset,
        records,
        diverging,
        current_leader,
        aborted,
        preferred_read_replica,
    )
    return result, position


def _parse_aborted(frame: memoryview, position: int, flexible: bool) -> tuple[list[tuple[int, int]] | None, int]:
    if flexible:
        size, position = read_uvarint(frame, position)
        count = size - 1
    else:
        (count,) = INT32.unpack_from(frame, position)
        position += 4
    if count == -1:
        return None, position
    check_count(frame, position, count, _ABORTED.size + flexible)
    aborted: list[tuple[int, int]] = []
    for _ in range(count):
        aborted.append(_ABORTED.unpack_from(frame, position))
        position += _ABORTED.size
        if flexible:
            position = skip_tags(frame, position)
    return aborted, position
