"""The states of a membership, its settings, and what it has the program do. Owns these shapes alone."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from cluster.client.consumer.group.group_requests import Generation, MemberToAssign


class MembershipState(Enum):
    """Kafka's ``AbstractCoordinator.MemberState``."""

    #: In no generation, and not on the way to one.
    UNJOINED = "Unjoined"
    #: It has given away what it must, and joins.
    PREPARING_REBALANCE = "PreparingRebalance"
    #: In a generation; the leader's assignment is awaited.
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


#: In a generation: heartbeats are due.
JOINED = frozenset({MembershipState.COMPLETING_REBALANCE, MembershipState.STABLE})


class MembershipSettings(NamedTuple):
    """The consumer's keys of the same names."""

    group_id: str
    group_instance_id: str | None
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    request_timeout_ms: int


class PrepareJoin(NamedTuple):
    """Give away what the protocol demands, and say what the member wants (``GroupMembership.prepared``).

    ``is_lost``: the generation is over already, and with it everything that was assigned.
    """

    generation: Generation
    is_lost: bool


class DivideAmong(NamedTuple):
    """This member leads: divide the partitions among the members (``GroupMembership.divided``).

    ``is_skipped``: they are divided already (KIP-814); it is told who there is, to watch what changes.
    """

    generation: Generation
    members: tuple[MemberToAssign, ...]
    is_skipped: bool


class TakeAssignment(NamedTuple):
    """Read what is assigned (``GroupMembership.taken``)."""

    generation: Generation
    assignment: bytes


ProgramStep = PrepareJoin | DivideAmong | TakeAssignment
