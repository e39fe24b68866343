"""What a group takes in memory, about, and by how much a request would make it larger.

Owns these estimates. Does not own the sums that they are made of, which a group keeps as it changes, nor the bounds.
"""

from __future__ import annotations

from collections.abc import Mapping

from cluster.coordinator.group.group import Group
from cluster.coordinator.group.members import MEMBER_BYTES
from cluster.coordinator.group.requests import JoinRequest

#: What a group takes besides its members and offsets.
GROUP_BYTES = 2000


def total_bytes(group: Group) -> int:
    """All of it, with what is being stored."""
    own = GROUP_BYTES + len(group.group_id) + group.size_bytes + group.offsets.size_bytes
    return own + group.assigned_bytes + group.storing_bytes


def join_growth(group: Group, request: JoinRequest) -> int:
    """By how much it becomes larger, at most, if one joins that tells this."""
    member_id = group.static_members.get(request.group_instance_id or "", request.member_id)
    member = group.members.get(member_id)
    return MEMBER_BYTES + request.size_bytes - (0 if member is None else member.size_bytes)


def sync_growth(group: Group, assignments: Mapping[str, bytes]) -> int:
    """The same if these are its assignments."""
    return sum(map(len, assignments.values())) - group.assigned_bytes


def has_room(group: Group, request: JoinRequest, most_bytes: int) -> bool:
    """Whether what a member tells fits. Ids that were handed out do not keep members from joining again."""
    member = group.members.get(request.member_id)
    if member is None:
        return group.size_bytes + request.size_bytes <= most_bytes
    return group.members_bytes - member.size_bytes + request.size_bytes <= most_bytes


def least_record_bytes(group: Group, assignments: Mapping[str, bytes]) -> int:
    """No more than the record of the group takes with these assignments."""
    told = sum(len(member.metadata(group.protocol_name)) for member in group.members.values())
    return told + sum(map(len, assignments.values()))
