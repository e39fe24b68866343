"""The values of groups in ``__consumer_offsets``, in Kafka's bytes (docs/reference/kafka.md "Group records").

Owns the layout of a generation with its members. Writes version 3 and reads 0 to 3. Reading is strict, as that of keys
and offsets (``records``). Does not own what a value means to a group (``stored_group``).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from cluster.coordinator.group.records import NO_TIMESTAMP, CorruptGroupRecord, check_end, check_version
from cluster.protocol.errors import MalformedRequest
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

_GROUP_VALUE_VERSION = 3
#: The least bytes of a member: three strings, an int32 and two lengths of bytes.
_LEAST_MEMBER_BYTES = 18


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
        check_version(version, _GROUP_VALUE_VERSION, "group")
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
        check_end(data, position, "group value")
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
