"""What an append to ``__consumer_offsets`` is for: what its result decides.

Owns the shapes. Each is handed to the shell inside a ``GroupAppend`` and comes back with the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cluster.coordinator.group.records import CommittedOffset
from cluster.coordinator.group.requests import NO_PRODUCER_ID, Protocols, Waiter
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class AssignmentStored:
    """A leader's assignment: it is told to the members once it is stored."""

    generation_id: int
    assignments: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class StaticMemberStored:
    """A static member under a new id, in a Stable group that does not rebalance; the rest is what it was before."""

    waiter: Waiter
    group_instance_id: str
    former_member_id: str
    member_id: str
    former_leader: str
    former_protocols: Protocols
    former_session_timeout_ms: int
    former_rebalance_timeout_ms: int
    supports_skipping_assignment: bool


@dataclass(frozen=True, slots=True)
class EmptyGroupStored:
    """A generation without members. If it fails, an older generation returns at a failover and its members expire."""


@dataclass(frozen=True, slots=True)
class OffsetsStored:
    """Committed offsets. ``refused`` were not written and are answered with their own errors."""

    waiter: Waiter
    offsets: Mapping[TopicPartition, CommittedOffset]
    refused: Mapping[TopicPartition, ErrorCode]
    producer_id: int = NO_PRODUCER_ID


@dataclass(slots=True)
class GroupRemoval:
    """What one or more batches of tombstones do together. ``waiter`` is None if no request asked for it; ``success`` is
    its answer if all goes well. ``error_code`` is that of the first batch that failed."""

    removes_group: bool = False
    waiter: Waiter | None = None
    success: object = None
    error_code: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class RemovalStored:
    """Tombstones of some offsets; the last batch has that of the group too, if it is Dead and was stored."""

    removal: GroupRemoval
    partitions: tuple[TopicPartition, ...]
    is_last: bool


Purpose = AssignmentStored | StaticMemberStored | EmptyGroupStored | OffsetsStored | RemovalStored
