"""A group as its record has it: what is stored of a group, and the group that comes back from it.

Does not own the bytes (``group_values``), nor the life of a group that is here (``group``).
"""

from __future__ import annotations

from collections.abc import Mapping

from cluster.coordinator.group.group import Group
from cluster.coordinator.group.group_values import GroupValue
from cluster.coordinator.group.homes import OffsetsPartition
from cluster.coordinator.group.members import GroupMember
from cluster.coordinator.group.states import GroupState


def group_of(group_id: str, home: OffsetsPartition, value: GroupValue) -> Group:
    """A group as it was stored: Stable if it has members."""
    group = Group(group_id, home, value.state_timestamp_ms)
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


def value_of(group: Group, assignments: Mapping[str, bytes]) -> GroupValue:
    """What is stored of a group, with what each member is assigned."""
    members = tuple(
        member.value(group.protocol_name, assignments.get(member_id, b""))
        for member_id, member in group.members.items()
    )
    return GroupValue(
        group.protocol_type or "",
        group.generation_id,
        group.protocol_name,
        group.leader,
        group.state_timestamp_ms,
        members,
    )


def revived(group: Group, *, is_stored: bool) -> Group:
    """A group like this one was while it was Empty: it is Dead, and not all of its removal could be stored.
    ``is_stored`` is whether its own record is still in the log; without it only offsets are left."""
    again = Group(group.group_id, group.home, group.state_timestamp_ms, group.client_host)
    if is_stored:
        again.generation_id = group.generation_id
        again.protocol_type = group.protocol_type
    again.offsets = group.offsets
    return again
