"""DescribeGroups and ListGroups: what is told about groups, which changes nothing.

Owns which fields are told in which state. Does not own whether this broker answers for a group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from cluster.coordinator.group.answers import GroupDescription, GroupListing
from cluster.coordinator.group.group import Group
from cluster.coordinator.group.states import GroupState
from cluster.protocol.errors import ErrorCode


def describe(error_code: ErrorCode, group_id: str, group: Group | None) -> GroupDescription:
    """A group that is not there is Dead; metadata and assignments are told in Stable alone."""
    if error_code is not ErrorCode.NONE:
        return GroupDescription(error_code, group_id)
    if group is None:
        return GroupDescription(error_code, group_id, GroupState.DEAD)
    protocol_name = group.protocol_name if group.state is GroupState.STABLE else None
    members = tuple(member.description(protocol_name) for member in group.members.values())
    return GroupDescription(error_code, group_id, group.state, group.protocol_type or "", protocol_name or "", members)


def listing(groups: Iterable[Group], states: Collection[str]) -> Iterator[GroupListing | None]:
    """All groups, or those in ``states``, whose names may be in any case (KIP-518). None for each of the others: to
    pass over a hundred thousand of them takes as long as to list some."""
    wanted = {state.lower() for state in states}
    for group in groups:
        if not wanted or group.state.value.lower() in wanted:
            yield GroupListing(group.group_id, group.protocol_type or "", group.state)
        else:
            yield None
