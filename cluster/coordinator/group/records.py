"""The records of ``__consumer_offsets``: keys and values in Kafka's bytes (docs/reference/kafka.md "Group records").

Owns the layouts of both kinds of key and of committed offsets, each behind an int16 version. Writes the versions that
Kafka 3.8 writes and reads all before flexible ones. A value of None, a tombstone, removes what its key names. Does not
own the values of groups (``group_values``), what a record means to a group (``loading``), nor batches.

Reading is strict: bytes that are missing, left over or of an unknown version raise ``CorruptGroupRecord``. A key of a
newer version alone is no error: what follows a key is not known, and a reader passes over it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cluster.protocol.errors import MalformedRequest, ProtocolError
from cluster.protocol.primitives import (
    INT16,
    INT32,
    INT64,
    READ_ERRORS,
    Buffer,
    read_string,
    write_nullable_string,
)
from cluster.topic_partition import TopicPartition

#: (topic, partition).

_OFFSET_KEY_VERSION = 1
_GROUP_KEY_VERSION = 2
_OFFSET_VALUE_VERSION = 3
#: The only version with a time of its own at which an offset expires.
_EXPIRING_VALUE_VERSION = 1

#: What stands for "no leader epoch", "no expiry" and "no time of the state" in a record.
NO_LEADER_EPOCH = NO_TIMESTAMP = -1

#: The least bytes of an offset, in key and value, besides its texts.
LEAST_OFFSET_BYTES = 34


class CorruptGroupRecord(ProtocolError):
    """Bytes that are no record of ``__consumer_offsets``."""


@dataclass(frozen=True, slots=True)
class OffsetKey:
    """The key of a committed offset. Version 0 is laid out like 1."""

    group_id: str
    topic: str
    partition: int

    @property
    def topic_partition(self) -> TopicPartition:
        return self.topic, self.partition


@dataclass(frozen=True, slots=True)
class GroupKey:
    """The key of a group."""

    group_id: str


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key of a version that is newer than this code."""

    version: int


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """What a consumer committed for one partition. ``expire_timestamp_ms`` is -1 unless the request named a time."""

    offset: int
    metadata: str
    commit_timestamp_ms: int
    leader_epoch: int = NO_LEADER_EPOCH
    expire_timestamp_ms: int = NO_TIMESTAMP


def offset_key(group_id: str, topic: str, partition: int) -> bytes:
    text = write_nullable_string(group_id) + write_nullable_string(topic)
    return INT16.pack(_OFFSET_KEY_VERSION) + text + INT32.pack(partition)


def group_key(group_id: str) -> bytes:
    return INT16.pack(_GROUP_KEY_VERSION) + write_nullable_string(group_id)


def parse_key(data: Buffer) -> OffsetKey | GroupKey | UnknownKey:
    """Raises ``CorruptGroupRecord``."""
    try:
        (version,) = INT16.unpack_from(data)
        if version < 0:
            raise CorruptGroupRecord(f"a key of version {version}")
        if version > _GROUP_KEY_VERSION:
            return UnknownKey(version)
        group_id, position = read_string(data, 2)
        if version == _GROUP_KEY_VERSION:
            check_end(data, position, "group key")
            return GroupKey(group_id)
        topic, position = read_string(data, position)
        (partition,) = INT32.unpack_from(data, position)
        check_end(data, position + 4, "offset key")
        return OffsetKey(group_id, topic, partition)
    except (*READ_ERRORS, MalformedRequest) as error:
        raise CorruptGroupRecord(f"key: {error}") from error


class Tombstones:
    """Those of some offsets of a group, and of the group itself if ``with_group``. Each is made when it is asked for:
    all of them may take a thousand times what the offsets do."""

    __slots__ = ("_group_id", "_partitions", "_with_group")

    def __init__(self, group_id: str, partitions: Sequence[TopicPartition], *, with_group: bool) -> None:
        self._group_id = group_id
        self._partitions = partitions
        self._with_group = with_group

    def __repr__(self) -> str:
        return f"Tombstones({self._group_id!r}, {len(self._partitions)}, with_group={self._with_group})"

    def __iter__(self) -> Iterator[tuple[bytes, None]]:
        for partition in self._partitions:
            yield offset_key(self._group_id, *partition), None
        if self._with_group:
            yield group_key(self._group_id), None


def offset_value(committed: CommittedOffset) -> bytes:
    """Version 3, or version 1 for an offset that has an expiry of its own and so loses its leader epoch."""
    metadata = write_nullable_string(committed.metadata)
    if committed.expire_timestamp_ms != NO_TIMESTAMP:
        head = INT16.pack(_EXPIRING_VALUE_VERSION) + INT64.pack(committed.offset)
        return head + metadata + struct.pack(">qq", committed.commit_timestamp_ms, committed.expire_timestamp_ms)
    head = struct.pack(">hqi", _OFFSET_VALUE_VERSION, committed.offset, committed.leader_epoch)
    return head + metadata + INT64.pack(committed.commit_timestamp_ms)


def parse_offset_value(data: Buffer) -> CommittedOffset:
    """Versions 0 to 3. Raises ``CorruptGroupRecord``."""
    try:
        (version,) = INT16.unpack_from(data)
        check_version(version, _OFFSET_VALUE_VERSION, "offset")
        (offset,) = INT64.unpack_from(data, 2)
        position = 10
        leader_epoch = NO_LEADER_EPOCH
        expire_timestamp_ms = NO_TIMESTAMP
        if version == _OFFSET_VALUE_VERSION:
            (leader_epoch,) = INT32.unpack_from(data, position)
            position += 4
        metadata, position = read_string(data, position)
        (commit_timestamp_ms,) = INT64.unpack_from(data, position)
        position += 8
        if version == _EXPIRING_VALUE_VERSION:
            (expire_timestamp_ms,) = INT64.unpack_from(data, position)
            position += 8
        check_end(data, position, "offset value")
    except (*READ_ERRORS, MalformedRequest) as error:
        raise CorruptGroupRecord(f"offset value: {error}") from error
    return CommittedOffset(offset, metadata, commit_timestamp_ms, leader_epoch, expire_timestamp_ms)


def check_version(version: int, newest: int, what: str) -> None:
    if not 0 <= version <= newest:
        raise CorruptGroupRecord(f"{what} value of version {version}")


def check_end(data: Buffer, position: int, what: str) -> None:
    if position != len(data):
        raise CorruptGroupRecord(f"{what} with {len(data) - position} bytes left over")
