"""What the group coordinator answers, without the wire.

Owns the shapes. Does not own layouts, nor who waits for which answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cluster.coordinator.group.records import NO_LEADER_EPOCH
from cluster.coordinator.group.requests import NO_GENERATION
from cluster.coordinator.group.states import GroupState
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """What a leader is told about one member."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinAnswer:
    """JoinGroup. Only a leader is told the members."""

    error_code: ErrorCode
    member_id: str
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncAnswer:
    """SyncGroup."""

    error_code: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class MemberLeft:
    """One member of LeaveGroup."""

    member_id: str
    group_instance_id: str | None
    error_code: ErrorCode


@dataclass(frozen=True, slots=True)
class LeaveAnswer:
    """LeaveGroup."""

    error_code: ErrorCode
    members: tuple[MemberLeft, ...] = ()


@dataclass(frozen=True, slots=True)
class FetchedOffset:
    """One partition of OffsetFetch; offset -1 where nothing is committed."""

    error_code: ErrorCode = ErrorCode.NONE
    offset: int = -1
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class DeleteOffsetsAnswer:
    """OffsetDelete. After an error for the whole group nothing is told of partitions."""

    error_code: ErrorCode
    partitions: Mapping[TopicPartition, ErrorCode] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """One member in DescribeGroups. Metadata and assignment are told in Stable alone."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes = b""
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """One group in DescribeGroups. An unknown group is Dead, without error; one that is not here has no state."""

    error_code: ErrorCode
    group_id: str
    state: GroupState | None = None
    protocol_type: str = ""
    protocol_name: str = ""
    members: tuple[MemberDescription, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupListing:
    """One group in ListGroups."""

    group_id: str
    protocol_type: str
    state: GroupState
