"""One group: its state and generation, its members, who leads, which protocol they share.

Owns membership and what follows from it alone. Does not own when members join, sync or go (``rebalancing`` and the
modules of each request), nor how offsets count (``group_offsets``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cluster.coordinator.group.answers import JoinedMember
from cluster.coordinator.group.decisions import TimerName
from cluster.coordinator.group.group_offsets import GroupOffsets
from cluster.coordinator.group.members import MEMBER_BYTES, GroupMember
from cluster.coordinator.group.records import GroupValue
from cluster.coordinator.group.requests import Protocols, Waiter
from cluster.coordinator.group.states import GroupState, check_transition
from cluster.coordinator.group.supporters import Supporters
from cluster.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from cluster.protocol.errors import MalformedRequest
from cluster.topic_partition import TopicPartition

#: Names of topics, in lists that differ, that are read of the subscriptions of a group.
MOST_TOPICS = 20_000


@dataclass(slots=True)
class OffsetsPartition:
    """A partition of ``__consumer_offsets`` that this broker leads, without a break since ``leading_since``. Something
    of the groups that are ``unavailable`` cannot be read."""

    index: int
    leader_epoch: int
    leading_since: int
    is_loading: bool = True
    unavailable: frozenset[str] = frozenset()
    #: Partitions of topics that were deleted meanwhile.
    deleted: set[TopicPartition] = field(default_factory=set)


class InitialJoin(NamedTuple):
    """The delay of a first rebalance: how long it was set for, and how much longer it may be extended."""

    delay_ms: int
    remaining_ms: int


class Group:
    """``timers`` are those that are set, with their deadlines. ``storing`` is whether this generation's assignment is
    being appended. ``replacing`` are static members whose new ids are, in Stable. ``counted_bytes`` is what ``Room``
    has counted it for, and ``client_host`` for which host, empty if no client has used it since it was loaded."""

    def __init__(self, group_id: str, home: OffsetsPartition, now_ms: int, client_host: str = "") -> None:
        self.client_host = client_host
        self.group_id = group_id
        self.home = home
        self.state = GroupState.EMPTY
        self.state_timestamp_ms = now_ms
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members: dict[str, GroupMember] = {}
        #: Instance -> member id.
        self.static_members: dict[str, str] = {}
        #: Member ids that were handed out and not used yet (KIP-394).
        self.pending_members: set[str] = set()
        self.pending_sync: set[str] = set()
        self.initial_join: InitialJoin | None = None
        self.has_new_members = False
        self.storing = False
        self.replacing: set[str] = set()
        self.timers: dict[TimerName, int] = {}
        self.offsets = GroupOffsets()
        self.counted_bytes = 0
        self.members_bytes = 0
        self.assigned_bytes = 0
        self.storing_bytes = 0
        self._joined: set[str] = set()
        self.supporters = Supporters()

    def __repr__(self) -> str:
        return (
            f"<Group {self.group_id} {self.state.value} generation {self.generation_id}, {len(self.members)} members>"
        )

    @classmethod
    def of_value(cls, group_id: str, home: OffsetsPartition, value: GroupValue) -> Group:
        """A group as it was stored: Stable if it has members."""
        group = cls(group_id, home, value.state_timestamp_ms)
        group.state = GroupState.STABLE if value.members else GroupState.EMPTY
        group.generation_id = value.generation_id
        group.protocol_name = value.protocol_name
        for member in value.members:
            group.add(GroupMember.of_value(member, value.protocol_name or ""))
        group.protocol_type = value.protocol_type or None
        group.client_host = next((member.client_host for member in value.members), "")
        if value.leader in group.members:
            group.leader = value.leader
        return group

    def value(self, assignments: Mapping[str, bytes]) -> GroupValue:
        """What is stored of it, with what each member is assigned."""
        members = tuple(
            member.value(self.protocol_name, assignments.get(member_id, b""))
            for member_id, member in self.members.items()
        )
        return GroupValue(
            self.protocol_type or "",
            self.generation_id,
            self.protocol_name,
            self.leader,
            self.state_timestamp_ms,
            members,
        )

    def revived(self, *, is_stored: bool) -> Group:
        """A group like this one was while it was Empty: it is Dead, and not all of its removal could be stored.
        ``is_stored`` is whether its own record is still in the log; without it only offsets are left."""
        group = Group(self.group_id, self.home, self.state_timestamp_ms, self.client_host)
        if is_stored:
            group.generation_id = self.generation_id
            group.protocol_type = self.protocol_type
        group.offsets = self.offsets
        return group

    # states

    def transition(self, state: GroupState, now_ms: int) -> None:
        """Raises ``IllegalGroupTransition``."""
        check_transition(self.state, state)
        self.state = state
        self.state_timestamp_ms = now_ms

    @property
    def is_nothing(self) -> bool:
        """Whether nothing of it is here or in the log."""
        is_there = self.state is not GroupState.EMPTY or self.generation_id or self.pending_members
        return not is_there and self.offsets.is_empty

    @property
    def can_rebalance(self) -> bool:
        return self.state in (GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE)

    def begin_generation(self, now_ms: int) -> None:
        """The join phase is over. Raises ``IllegalGroupTransition`` in any state but PreparingRebalance."""
        self.transition(GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY, now_ms)
        self.generation_id += 1
        self.protocol_name = self.select_protocol()
        self.pending_sync = set()

    # members

    def add(self, member: GroupMember) -> None:
        """Its id and instance are not there yet. The first member leads."""
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        self.pending_members.discard(member.member_id)
        self.members[member.member_id] = member
        self.members_bytes += member.size_bytes
        self.assigned_bytes += len(member.assignment)
        self.supporters.add(member.protocols)
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> None:
        """A member, or an id that is pending. Its requests have been answered."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self.members_bytes -= member.size_bytes
            self.assigned_bytes -= len(member.assignment)
            self.supporters.remove(member.protocols)
            if member.group_instance_id is not None:
                del self.static_members[member.group_instance_id]
        self._joined.discard(member_id)
        self.pending_members.discard(member_id)
        self.pending_sync.discard(member_id)
        self.replacing.discard(member_id)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def rename(self, member: GroupMember, member_id: str) -> None:
        """A static member came back under a new id. Its requests have been answered."""
        former = member.member_id
        del self.members[former]
        self.members_bytes += len(member_id) - len(former)
        member.member_id = member_id
        self.members[member_id] = member
        self.static_members[member.group_instance_id or ""] = member_id
        if self.leader == former:
            self.leader = member_id
        if former in self.pending_sync:
            self.pending_sync.remove(former)
            self.pending_sync.add(member_id)
        self.replacing.discard(former)

    def update(
        self, member: GroupMember, protocols: Protocols, session_timeout_ms: int, rebalance_timeout_ms: int
    ) -> None:
        """What a member told when it joined again."""
        self.supporters.remove(member.protocols)
        self.supporters.add(protocols)
        self.members_bytes -= member.size_bytes
        member.protocols = protocols
        self.members_bytes += member.size_bytes
        member.session_timeout_ms = session_timeout_ms
        member.rebalance_timeout_ms = rebalance_timeout_ms

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # assignments

    def assign(self, member: GroupMember, assignment: bytes) -> None:
        self.assigned_bytes += len(assignment) - len(member.assignment)
        member.assignment = assignment

    def begin_storing(self, assignments: Mapping[str, bytes]) -> None:
        """This generation's assignment is being appended."""
        self.storing, self.storing_bytes = True, sum(map(len, assignments.values()))

    def end_storing(self) -> None:
        self.storing, self.storing_bytes = False, 0

    # joining

    def park_join(self, member: GroupMember, waiter: Waiter) -> None:
        member.join_waiter = waiter
        self._joined.add(member.member_id)

    def take_join(self, member: GroupMember) -> Waiter | None:
        """Whose JoinGroup waits; it no longer does."""
        waiter, member.join_waiter = member.join_waiter, None
        self._joined.discard(member.member_id)
        return waiter

    @property
    def joined(self) -> Collection[str]:
        """Members whose JoinGroup waits."""
        return self._joined

    @property
    def has_all_joined(self) -> bool:
        return len(self._joined) == len(self.members) and not self.pending_members

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it has joined, else the first member that has. False if none has."""
        if self.leader is None or self.leader not in self._joined:
            joined = next((member_id for member_id in self.members if member_id in self._joined), None)
            if joined is None:
                return False
            self.leader = joined
        return True

    def accepts(self, member_id: str, max_size: int) -> bool:
        """Whether there is room (KIP-389). While members join again, those count that have: the last ones are late."""
        if self.state in (GroupState.EMPTY, GroupState.DEAD):
            return True
        if self.state is GroupState.PREPARING_REBALANCE:
            return member_id in self._joined or len(self._joined) < max_size
        return member_id in self.members or len(self.members) < max_size

    @property
    def size_bytes(self) -> int:
        """About what its members and pending ids take in memory."""
        return self.members_bytes + MEMBER_BYTES * len(self.pending_members)

    def joined_members(self) -> tuple[JoinedMember, ...]:
        """What a leader is told."""
        return tuple(member.joined(self.protocol_name) for member in self.members.values())

    # protocols

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether one who speaks these protocols may join."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type and protocols)
        is_shared = self.supporters.is_offered_by(len(self.members), protocols)
        return protocol_type == self.protocol_type and is_shared

    def select_protocol(self) -> str | None:
        """The protocol with most votes, the earliest voter's among equals; None without members."""
        candidates = self.supporters.offered_by(len(self.members))
        votes = Counter(vote for member in self.members.values() if (vote := member.vote(candidates)) is not None)
        return max(votes, key=lambda name: votes[name], default=None)

    def subscribed_topics(self) -> frozenset[str] | None:
        """What consumers of the group want; None if that is not known, and so no topic counts as unwanted: of other
        groups, and if subscriptions cannot be read or name too much. It is read when it is asked for: to keep it could
        take a hundred times what the members told, and to read it at each rebalance much time."""
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE or (self.members and self.protocol_name is None):
            return None
        try:
            told = (member.metadata(self.protocol_name) for member in self.members.values())
            return subscribed_topics(told, MOST_TOPICS)
        except MalformedRequest:
            return None
