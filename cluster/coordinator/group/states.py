"""The states of a group and which may follow which (docs/reference/kafka.md "Groups").

Owns the names, as DescribeGroups tells them, and the table of transitions. Does not own why one happens.
"""

from __future__ import annotations

from enum import Enum


class GroupState(Enum):
    """The value is the name on the wire."""

    #: No members. Offsets may remain, and simple consumers commit them without members.
    EMPTY = "Empty"
    #: Members are asked to join again; their JoinGroup waits.
    PREPARING_REBALANCE = "PreparingRebalance"
    #: A new generation waits for its leader's assignment.
    COMPLETING_REBALANCE = "CompletingRebalance"
    #: The assignment is stored, and told to every member that asks.
    STABLE = "Stable"
    #: It is being removed, or another broker coordinates it.
    DEAD = "Dead"


#: State -> where it may come from.
PREDECESSORS: dict[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset({GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE}),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
    GroupState.DEAD: frozenset(GroupState),
}


class IllegalGroupTransition(ValueError):
    """A state that may not follow the present one. Nothing that a client sends leads to it."""


def check_transition(before: GroupState, after: GroupState) -> None:
    """Raises ``IllegalGroupTransition``."""
    if before not in PREDECESSORS[after]:
        raise IllegalGroupTransition(f"{after.value} may not follow {before.value}")
