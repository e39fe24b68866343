"""Fetch requests (API key 1), versions 4-12, by hand, both ways, for consumers and followers.

Owns the layout. Does not own sessions (KIP-227), nor what a request means.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from cluster.protocol.apis import SUPPORTED, ApiKey
from cluster.protocol.errors import MalformedRequest
from cluster.protocol.primitives import (
    INT32,
    MAX_TAGS,
    READ_ERRORS,
    check_total,
    read_compact_count,
    read_compact_string,
    read_count,
    read_string,
    skip_tags,
    write_compact_nullable_string,
    write_nullable_string,
    write_uvarint,
)

MIN_VERSION, MAX_VERSION = SUPPORTED[ApiKey.FETCH]
_FLEXIBLE_FROM = 12

_REQUEST_HEADER = struct.Struct(">hhi")
#: replica id, max wait, min bytes, max bytes, isolation level (and from version 7 session id and epoch)
_HEAD_V4 = struct.Struct(">iiiib")
_HEAD_V7 = struct.Struct(">iiiibii")
#: partition, [current leader epoch from 9], fetch offset, [last fetched epoch from 12], [log start offset from 5], max
_PARTITION_V4 = struct.Struct(">iqi")
_PARTITION_V5 = struct.Struct(">iqqi")
_PARTITION_V9 = struct.Struct(">iiqqi")
_PARTITION_V12 = struct.Struct(">iiqiqi")


class FetchPartition(NamedTuple):
    """What is wanted from one partition. Epochs and ``log_start_offset`` are -1 where not known or not sent."""

    topic: str
    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    partition_max_bytes: int


class FetchRequest(NamedTuple):
    """``replica_id`` is -1 for consumers, else the broker id of a follower. ``forgotten`` is (topic, partition)."""

    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    partitions: list[FetchPartition]
    forgotten: list[tuple[str, int]] = []  # noqa: RUF012 - never changed in place
    rack_id: str = ""


def parse_request(body: memoryview, version: int) -> FetchRequest:
    """Parse the body of a request (after its header). Raises ``MalformedRequest``."""
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise MalformedRequest(f"Fetch version {version}")
    try:
        if version >= _FLEXIBLE_FROM:
            request, position = _parse_flexible(body)
        else:
            request, position = _parse_plain(body, version)
    except (*READ_ERRORS, MalformedRequest) as error:
        raise MalformedRequest(f"Fetch: {error}") from error
    if position != len(body):
        raise MalformedRequest(f"{len(body) - position} bytes after a Fetch request")
    return request


def _parse_plain(body: memoryview, version: int) -> tuple[FetchRequest, int]:
    if version >= 7:
        head = _HEAD_V7.unpack_from(body, 0)
        position = _HEAD_V7.size
    else:
        head = (*_HEAD_V4.unpack_from(body, 0), 0, -1)
        position = _HEAD_V4.size
    topic_count, position = read_count(body, position, 6)
    check_total(topic_count)
    partitions: list[FetchPartition] = []
    for _ in range(topic_count):
        topic, position = read_string(body, position)
        count, position = read_count(body, position, _PARTITION_V4.size)
        check_total(topic_count + len(partitions) + count)
        for _ in range(count):
            partition, position = _parse_plain_partition(body, position, version, topic)
            partitions.append(partition)
    forgotten: list[tuple[str, int]] = []
    rack_id = ""
    if version >= 7:
        topic_count, position = read_count(body, position, 6)
        check_total(topic_count)
        for _ in range(topic_count):
            topic, position = read_string(body, position)
            count, position = read_count(body, position, 4)
            check_total(topic_count + len(forgotten) + count)
            forgotten.extend((topic, INT32.unpack_from(body, position + 4 * index)[0]) for index in range(count))
            position += 4 * count
    if version >= 11:
        rack_id, position = read_string(body, position)
    return _request(head, partitions, forgotten, rack_id), position


def _parse_plain_partition(body: memoryview, position: int, version: int, topic: str) -> tuple[FetchPartition, int]:
    current_leader_epoch = log_start_offset = -1
    if version >= 9:
        partition, current_leader_epoch, offset, log_start_offset, max_bytes = _PARTITION_V9.unpack_from(body, position)
        position += _PARTITION_V9.size
    elif version >= 5:
        partition, offset, log_start_offset, max_bytes = _PARTITION_V5.unpack_from(body, position)
        position += _PARTITION_V5.size
    else:
        partition, offset, max_bytes = _PARTITION_V4.unpack_from(body, position)
        position += _PARTITION_V4.size
    return FetchPartition(topic, partition, current_leader_epoch, offset, -1, log_start_offset, max_bytes), position


def _parse_flexible(body: memoryview) -> tuple[FetchRequest, int]:
    head = _HEAD_V7.unpack_from(body, 0)
    topic_count, position = read_compact_count(body, _HEAD_V7.size, 3)
    check_total(topic_count)
    partitions: list[FetchPartition] = []
    for _ in range(topic_count):
        topic, position = read_compact_string(body, position)
        count, position = read_compact_count(body, position, _PARTITION_V12.size + 1)
        check_total(topic_count + len(partitions) + count)
        for _ in range(count):
            fields = _PARTITION_V12.unpack_from(body, position)
            position = skip_tags(body, position + _PARTITION_V12.size, MAX_TAGS)
            partitions.append(FetchPartition(topic, *fields))
        position = skip_tags(body, position, MAX_TAGS)
    forgotten: list[tuple[str, int]] = []
    topic_count, position = read_compact_count(body, position, 3)
    check_total(topic_count)
    for _ in range(topic_count):
        topic, position = read_compact_string(body, position)
        count, position = read_compact_count(body, position, 4)
        check_total(topic_count + len(forgotten) + count)
        forgotten.extend((topic, INT32.unpack_from(body, position + 4 * index)[0]) for index in range(count))
        position = skip_tags(body, position + 4 * count, MAX_TAGS)
    rack_id, position = read_compact_string(body, position)
    position = skip_tags(body, position, MAX_TAGS)
    return _request(head, partitions, forgotten, rack_id), position


def _request(
    head: tuple[int, ...], partitions: list[FetchPartition], forgotten: list[tuple[str, int]], rack_id: str
) -> FetchRequest:
    replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch = head
    return FetchRequest(
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        partitions,
        forgotten,
        rack_id,
    )


def build_request(version: int, correlation_id: int, client_id: str | None, request: FetchRequest) -> bytes:
    """A request with its header, without the size prefix."""
    parts = [_REQUEST_HEADER.pack(ApiKey.FETCH, version, correlation_id), write_nullable_string(client_id)]
    if version >= _FLEXIBLE_FROM:
        parts.append(b"\x00")
    return b"".join((*parts, build_request_body(version, request)))


def build_request_body(version: int, request: FetchRequest) -> bytes:
    """What follows the header. Partitions are grouped by topic, in order of appearance."""
    flexible = version >= _FLEXIBLE_FROM
    parts: list[bytes] = []
    head = (request.replica_id, request.max_wait_ms, request.min_bytes, request.max_bytes, request.isolation_level)
    if version >= 7:
        parts.append(_HEAD_V7.pack(*head, request.session_id, request.session_epoch))
    else:
        parts.append(_HEAD_V4.pack(*head))
    topics: dict[str, list[bytes]] = {}
    for wanted in request.partitions:
        topics.setdefault(wanted.topic, []).append(_request_partition(wanted, version))
    _append_topics(parts, topics, flexible)
    if version >= 7:
        forgotten: dict[str, list[bytes]] = {}
        for topic, partition in request.forgotten:
            forgotten.setdefault(topic, []).append(INT32.pack(partition))
        _append_topics(parts, forgotten, flexible)
    if flexible:
        parts.append(write_compact_nullable_string(request.rack_id) + b"\x00")
    elif version >= 11:
        parts.append(write_nullable_string(request.rack_id))
    return b"".join(parts)


def _append_topics(parts: list[bytes], topics: dict[str, list[bytes]], flexible: bool) -> None:
    parts.append(write_uvarint(len(topics) + 1) if flexible else INT32.pack(len(topics)))
    for topic, entries in topics.items():
        if flexible:
            parts.append(write_compact_nullable_string(topic) + write_uvarint(len(entries) + 1))
            parts.extend(entries)
            parts.append(b"\x00")
        else:
            parts.append(write_nullable_string(topic) + INT32.pack(len(entries)))
            parts.extend(entries)


def _request_partition(wanted: FetchPartition, version: int) -> bytes:
    _, partition, leader_epoch, offset, last_fetched_epoch, log_start_offset, max_bytes = wanted
    if version >= _FLEXIBLE_FROM:
        fields = (partition, leader_epoch, offset, last_fetched_epoch, log_start_offset, max_bytes)
        return _PARTITION_V12.pack(*fields) + b"\x00"
    if version >= 9:
        return _PARTITION_V9.pack(partition, leader_epoch, offset, log_start_offset, max_bytes)
    if version >= 5:
        return _PARTITION_V5.pack(partition, offset, log_start_offset, max_bytes)
    return _PARTITION_V4.pack(partition, offset, max_bytes)
