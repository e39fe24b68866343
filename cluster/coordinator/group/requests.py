"""What is asked of the group coordinator, without the wire: one value per request that changes or reads a group.

Owns the shapes, and what the version of a request means for a decision. Does not own layouts: handlers make these of
messages. A ``Waiter`` stands for the answer that a request waits for; it is the shell's own and never None.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace

from cluster.coordinator.group.records import NO_LEADER_EPOCH
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition

Waiter = Hashable

#: The member id of one that has not got one yet.
UNKNOWN_MEMBER_ID = ""
#: The generation of requests that name none: those of simple consumers and of tools.
NO_GENERATION = -1
NO_PRODUCER_ID = NO_PRODUCER_EPOCH = -1

#: Protocols in the order in which a member prefers them: (name, metadata).
Protocols = tuple[tuple[str, bytes], ...]

#: What a protocol takes besides its name and metadata.
_PROTOCOL_BYTES = 200

_REBALANCE_TIMEOUT_FROM = 1
_MEMBER_ID_REQUIRED_FROM = 4
_SKIPS_ASSIGNMENT_FROM = 9


def protocols_bytes(protocols: Protocols) -> int:
    """About what they take in memory."""
    return sum(_PROTOCOL_BYTES + len(name) + len(metadata) for name, metadata in protocols)


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """JoinGroup. ``version`` decides what the answer may be."""

    group_id: str
    member_id: str
    protocol_type: str
    protocols: Protocols
    session_timeout_ms: int
    asked_rebalance_timeout_ms: int
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    version: int = _SKIPS_ASSIGNMENT_FROM

    @property
    def rebalance_timeout_ms(self) -> int:
        """Version 0 has none of its own (KIP-62)."""
        return self.asked_rebalance_timeout_ms if self.version >= _REBALANCE_TIMEOUT_FROM else self.session_timeout_ms

    @property
    def size_bytes(self) -> int:
        """About what a member takes that tells this, without what every member does."""
        return len(self.group_instance_id or "") + len(self.client_id) + protocols_bytes(self.protocols)

    @property
    def requires_known_member_id(self) -> bool:
        """Whether a new member is first given its id and asked to come again with it (KIP-394)."""
        return self.version >= _MEMBER_ID_REQUIRED_FROM and self.group_instance_id is None

    @property
    def supports_skipping_assignment(self) -> bool:
        """Whether a leader can be told that it leads and has nothing to assign (KIP-814)."""
        return self.version >= _SKIPS_ASSIGNMENT_FROM


@dataclass(frozen=True, slots=True)
class MemberIdentity:
    """The caller, in Heartbeat and in LeaveGroup, with its generation where there is one."""

    member_id: str
    group_instance_id: str | None = None
    generation_id: int = NO_GENERATION


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """SyncGroup. Type and name of the protocol are None before version 5; all but a leader's have no assignments."""

    group_id: str
    member: MemberIdentity
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OffsetToCommit:
    """One partition of OffsetCommit or TxnOffsetCommit. ``retention_ms`` is -1 but in versions 2 to 4."""

    offset: int
    metadata: str = ""
    leader_epoch: int = NO_LEADER_EPOCH
    retention_ms: int = -1


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """OffsetCommit, or TxnOffsetCommit if it names a producer. ``client_host`` as in JoinGroup."""

    group_id: str
    member: MemberIdentity
    offsets: Mapping[TopicPartition, OffsetToCommit]
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    client_host: str = ""

    def known(self, exists: Callable[[str, int], bool]) -> tuple[CommitRequest, dict[TopicPartition, ErrorCode]]:
        """The same for partitions that exist, and what the others are answered."""
        unknown = (each for each in self.offsets if not exists(*each))
        gone = dict.fromkeys(unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if not gone:
            return self, gone
        return replace(self, offsets={each: to for each, to in self.offsets.items() if each not in gone}), gone

    @property
    def is_transactional(self) -> bool:
        return self.producer_id != NO_PRODUCER_ID
