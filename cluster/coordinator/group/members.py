"""A member of a group: what it told when it joined, what it was assigned, and which of its requests wait.

Owns one member. Does not own when it is removed, nor its timers.
"""

from __future__ import annotations

from cluster.coordinator.group.answers import JoinedMember, MemberDescription
from cluster.coordinator.group.group_values import MemberValue
from cluster.coordinator.group.requests import Protocols, Waiter, protocols_bytes

#: What a member, or an id that is pending, takes besides its texts.
MEMBER_BYTES = 1000


class GroupMember:
    """``is_new`` until its first JoinGroup is answered: it cannot send heartbeats before. At most one JoinGroup and one
    SyncGroup of it wait."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "join_waiter",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync_waiter",
    )

    def __init__(
        self,
        member_id: str,
        protocols: Protocols,
        *,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        assignment: bytes = b"",
        is_new: bool = False,
    ) -> None:
        self.member_id = member_id
        self.protocols = protocols
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.assignment = assignment
        self.is_new = is_new
        self.join_waiter: Waiter | None = None
        self.sync_waiter: Waiter | None = None

    def __repr__(self) -> str:
        waits = " joining" if self.join_waiter is not None else " syncing" if self.sync_waiter is not None else ""
        instance = f" ({self.group_instance_id})" if self.group_instance_id is not None else ""
        return f"<GroupMember {self.member_id}{instance}{' new' if self.is_new else ''}{waits}>"

    @classmethod
    def of_value(cls, value: MemberValue, protocol_name: str) -> GroupMember:
        """A member as it was stored: of its protocols, the one that was chosen is left."""
        return cls(
            value.member_id,
            ((protocol_name, value.subscription),),
            session_timeout_ms=value.session_timeout_ms,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            group_instance_id=value.group_instance_id,
            client_id=value.client_id,
            client_host=value.client_host,
            assignment=value.assignment,
        )

    @property
    def size_bytes(self) -> int:
        """About what it takes in memory, and no less than it takes in a record."""
        texts = len(self.member_id) + len(self.group_instance_id or "") + len(self.client_id)
        return MEMBER_BYTES + texts + protocols_bytes(self.protocols)

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_parked(self) -> bool:
        """Whether it waits for an answer and so cannot be expected to send heartbeats, unless it is new."""
        return not self.is_new and (self.join_waiter is not None or self.sync_waiter is not None)

    def vote(self, candidates: frozenset[str]) -> str | None:
        """The first of its protocols among ``candidates``."""
        return next((name for name, _ in self.protocols if name in candidates), None)

    def metadata(self, protocol_name: str | None) -> bytes:
        """What it told under that protocol."""
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")

    def joined(self, protocol_name: str | None) -> JoinedMember:
        return JoinedMember(self.member_id, self.group_instance_id, self.metadata(protocol_name))

    def value(self, protocol_name: str | None, assignment: bytes) -> MemberValue:
        return MemberValue(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.metadata(protocol_name),
            assignment,
        )

    def description(self, protocol_name: str | None) -> MemberDescription:
        """``protocol_name`` is None unless the group is Stable."""
        head = (self.member_id, self.group_instance_id, self.client_id, self.client_host)
        if protocol_name is None:
            return MemberDescription(*head)
        return MemberDescription(*head, self.metadata(protocol_name), self.assignment)
