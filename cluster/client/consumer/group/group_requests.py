"""What a member of a group asks, as values, and one shape for all answers. Owns these shapes, not the wire's.

A request object stands for itself: its answer is handed back with the very object, which tells one that is no longer
waited for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cluster.client.cluster_view import BrokerAddress
from cluster.client.committed_offset import OffsetAndMetadata
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition

NO_GENERATION_ID = -1
NO_MEMBER_ID = ""

#: Protocols in the order in which the member prefers them: (name, metadata).
MemberProtocols = tuple[tuple[str, bytes], ...]


class Generation(NamedTuple):
    """Who a member is, and in which generation of its group it is that (Kafka's class of the same name)."""

    generation_id: int = NO_GENERATION_ID
    member_id: str = NO_MEMBER_ID
    protocol_name: str | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the member is in no generation: what it had may be another member's."""
        return self.generation_id == NO_GENERATION_ID or self.member_id == NO_MEMBER_ID


#: A consumer that is no member: it may commit nevertheless, and nothing is fenced.
NO_GENERATION = Generation()


@dataclass(frozen=True, slots=True, eq=False)
class FindGroupCoordinator:
    """FindCoordinator, to any node."""

    group_id: str


@dataclass(frozen=True, slots=True, eq=False)
class JoinGroup:
    """JoinGroup, answered when all members have joined: ``timeout_ms`` is how long that may take."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: MemberProtocols
    reason: str
    timeout_ms: int


@dataclass(frozen=True, slots=True, eq=False)
class SyncGroup:
    """SyncGroup; only a leader has ``assignments``."""

    group_id: str
    generation: Generation
    group_instance_id: str | None
    assignments: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class MemberHeartbeat:
    """Heartbeat."""

    group_id: str
    generation: Generation
    group_instance_id: str | None


@dataclass(frozen=True, slots=True, eq=False)
class LeaveGroup:
    """LeaveGroup of one dynamic member."""

    group_id: str
    member_id: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class CommitOffsets:
    """OffsetCommit."""

    group_id: str
    generation: Generation
    group_instance_id: str | None
    offsets: Mapping[TopicPartition, OffsetAndMetadata]


@dataclass(frozen=True, slots=True, eq=False)
class FetchOffsets:
    """OffsetFetch, of stable offsets alone (KIP-447)."""

    group_id: str
    partitions: tuple[TopicPartition, ...]


MemberRequest = JoinGroup | SyncGroup | MemberHeartbeat | LeaveGroup
OffsetRequest = CommitOffsets | FetchOffsets
GroupRequest = FindGroupCoordinator | MemberRequest | OffsetRequest


class MemberToAssign(NamedTuple):
    """One member, as the leader is told of it."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class GroupAnswer:
    """What came back. A lost connection is NETWORK_EXCEPTION, an overdue answer REQUEST_TIMED_OUT, an API that the node
    does not serve UNSUPPORTED_VERSION. ``partitions`` are the codes of each, where an API has them.
    """

    error_code: ErrorCode = ErrorCode.NONE
    coordinator: BrokerAddress | None = None
    member_id: str = NO_MEMBER_ID
    generation_id: int = NO_GENERATION_ID
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[MemberToAssign, ...] = ()
    assignment: bytes = b""
    partitions: Mapping[TopicPartition, ErrorCode] = field(default_factory=dict)
    offsets: Mapping[TopicPartition, OffsetAndMetadata | None] = field(default_factory=dict)


class SendGroupRequest(NamedTuple):
    """Send this to the coordinator, or to any node if that is None. A node that cannot be reached is an answer, too."""

    node: BrokerAddress | None
    request: GroupRequest


class DropConnection(NamedTuple):
    """Close the connection to a coordinator of the past, with all that is in flight on it."""

    node_id: int
    reason: str


GroupAction = SendGroupRequest | DropConnection
