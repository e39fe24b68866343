"""The records of ``__consumer_offsets``: keys and values in Kafka's bytes (docs/reference/kafka.md "Group records").

Owns the layouts of both kinds of key, of committed offsets and of groups, each behind an int16 version. Writes the
versions that Kafka 3.8 writes and reads all before flexible ones. A value of None, a tombstone, removes what its key
names. Does not own what a record means to a group (``loading``), nor batches.

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
    read_count,
    read_nullable_string,
    read_slice,
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
_GROUP_VALUE_VERSION = 3

#: What stands for "no leader epoch", "no expiry" and "no time of the state" in a record.
NO_LEADER_EPOCH = NO_TIMESTAMP = -1

#: The least bytes of an offset, in key and value, besides its texts.
LEAST_OFFSET_BYTES = 34
#: The least bytes of a member: three strings, an int32 and two lengths of bytes.
_LEAST_MEMBER_BYTES = 18


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


@dataclass(frozen=True, slots=True)
class MemberValue:
    """A member of a stored group."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupValue:
    """A stored group: a generation and what each member was assigned in it."""

    protocol_type: str
    generation_id: int
    protocol_name: str | None
    leader: str | None
    state_timestamp_ms: int
    members: tuple[MemberValue, ...]


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
            _check_end(data, position, "group key")
            return GroupKey(group_id)
        topic, position = read_string(data, position)
        (partition,) = INT32.unpack_from(data, position)
        _check_end(data, position + 4, "offset key")
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
        _check_version(version, _OFFSET_VALUE_VERSION, "offset")
        (offset,) = INT64.unpack_from(data, 2)
        position, leader_epoch, expire_timestamp_ms = 10, NO_LEADER_EPOCH, NO_TIMESTAMP
        if version == _OFFSET_VALUE_VERSION:
            (leader_epoch,) = INT32.unpack_from(data, position)
            position += 4
        metadata, position = read_string(data, position)
        (commit_timestamp_ms,) = INT64.unpack_from(data, position)
        position += 8
        if version == _EXPIRING_VALUE_VERSION:
            (expire_timestamp_ms,) = INT64.unpack_from(data, position)
            position += 8
        _check_end(data, position, "offset value")
    except (*READ_ERRORS, MalformedRequest) as error:
        raise CorruptGroupRecord(f"offset value: {error}") from error
    return CommittedOffset(offset, metadata, commit_timestamp_ms, leader_epoch, expire_timestamp_ms)


def group_value(group: GroupValue) -> bytes:
    """Version 3."""
    parts = [
        INT16.pack(_GROUP_VALUE_VERSION),
        write_nullable_string(group.protocol_type),
        INT32.pack(group.generation_id),
        write_nullable_string(group.protocol_name),
        write_nullable_string(group.leader),
        INT64.pack(group.state_timestamp_ms),
        INT32.pack(len(group.members)),
    ]
    for member in group.members:
        parts += (
            write_nullable_string(member.member_id),
            write_nullable_string(member.group_instance_id),
            write_nullable_string(member.client_id),
            write_nullable_string(member.client_host),
            struct.pack(">ii", member.rebalance_timeout_ms, member.session_timeout_ms),
            INT32.pack(len(member.subscription)) + member.subscription,
            INT32.pack(len(member.assignment)) + member.assignment,
        )
    return b"".join(parts)


def parse_group_value(data: Buffer) -> GroupValue:
    """Versions 0 to 3. Raises ``CorruptGroupRecord``."""
    try:
        (version,) = INT16.unpack_from(data)
        _check_version(version, _GROUP_VALUE_VERSION, "group")
        protocol_type, position = read_string(data, 2)
        (generation_id,) = INT32.unpack_from(data, position)
        protocol_name, position = read_nullable_string(data, position + 4)
        leader, position = read_nullable_string(data, position)
        state_timestamp_ms = NO_TIMESTAMP
        if version >= 2:
            (state_timestamp_ms,) = INT64.unpack_from(data, position)
            position += 8
        count, position = read_count(data, position, _LEAST_MEMBER_BYTES)
        members = []
        for _ in range(count):
            member, position = _read_member(data, position, version)
            members.append(member)
        _check_end(data, position, "group value")
        _check_once(members)
    except (*READ_ERRORS, MalformedRequest) as error:
        raise CorruptGroupRecord(f"group value: {error}") from error
    return GroupValue(protocol_type, generation_id, protocol_name, leader, state_timestamp_ms, tuple(members))


def _read_member(data: Buffer, position: int, version: int) -> tuple[MemberValue, int]:
    member_id, position = read_string(data, position)
    group_instance_id = None
    if version >= 3:
        group_instance_id, position = read_nullable_string(data, position)
    client_id, position = read_string(data, position)
    client_host, position = read_string(data, position)
    rebalance_timeout_ms = None
    if version >= 1:
        (rebalance_timeout_ms,) = INT32.unpack_from(data, position)
        position += 4
    (session_timeout_ms,) = INT32.unpack_from(data, position)
    subscription, position = _read_bytes(data, position + 4)
    assignment, position = _read_bytes(data, position)
    if rebalance_timeout_ms is None:
        # Before KIP-62 the session timeout was both.
        rebalance_timeout_ms = session_timeout_ms
    return (
        MemberValue(
            member_id,
            group_instance_id,
            client_id,
            client_host,
            rebalance_timeout_ms,
            session_timeout_ms,
            subscription,
            assignment,
        ),
        position,
    )


def _read_bytes(data: Buffer, position: int) -> tuple[bytes, int]:
    (size,) = INT32.unpack_from(data, position)
    view, position = read_slice(data, position + 4, size)
    return bytes(view), position


def _check_once(members: list[MemberValue]) -> None:
    instances = [member.group_instance_id for member in members if member.group_instance_id is not None]
    if len({member.member_id for member in members}) < len(members) or len(set(instances)) < len(instances):
        raise CorruptGroupRecord(f"a group value with a member twice: {[member.member_id for member in members]}")


def _check_version(version: int, newest: int, what: str) -> None:
    if not 0 <= version <= newest:
        raise CorruptGroupRecord(f"{what} value of version {version}")


def _check_end(data: Buffer, position: int, what: str) -> None:
    if position != len(data):
        raise CorruptGroupRecord(f"{what} with {len(data) - position} bytes left over")
