"""The groups of one broker, by partition of ``__consumer_offsets`` and by id.

Owns which partitions are led here, which of them are loaded, whether this broker answers for a group, and that each
group in the table is counted (``room``). Does not own what happens to a group.
"""

from __future__ import annotations

from cluster.coordinator.group.decisions import GroupSettings
from cluster.coordinator.group.group import Group
from cluster.coordinator.group.homes import OffsetsPartition
from cluster.coordinator.group.memory_quota import GroupQuota
from cluster.coordinator.partitioning import partition_for
from cluster.protocol.errors import ErrorCode


class GroupTable:
    """``homes`` are the partitions that are led here, ``groups`` what is loaded of each, ``room`` what these take."""

    def __init__(self, settings: GroupSettings) -> None:
        self.settings = settings
        self.homes: dict[int, OffsetsPartition] = {}
        self.groups: dict[int, dict[str, Group]] = {}
        self.room = GroupQuota(settings.groups_max_bytes)

    def status(self, group_id: str, *, empty_id_is_valid: bool = False) -> ErrorCode:
        """Whether this broker answers for a group."""
        if not group_id and not empty_id_is_valid:
            return ErrorCode.INVALID_GROUP_ID
        home = self.homes.get(self._partition(group_id))
        if home is None:
            return ErrorCode.NOT_COORDINATOR
        if home.is_loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.COORDINATOR_NOT_AVAILABLE if group_id in home.unavailable else ErrorCode.NONE

    def group(self, group_id: str) -> Group | None:
        return self.groups.get(self._partition(group_id), {}).get(group_id)

    def _partition(self, group_id: str) -> int:
        return partition_for(group_id, self.settings.offsets_topic_num_partitions)

    def all_groups(self) -> list[Group]:
        return [group for groups in self.groups.values() for group in groups.values()]

    def _is_here(self, group: Group) -> bool:
        """Whether a group is still what this broker has under its id."""
        return self.groups.get(group.home.index, {}).get(group.group_id) is group

    def _new_group(self, group_id: str, now_ms: int, client_host: str) -> Group:
        return Group(group_id, self.homes[self._partition(group_id)], now_ms, client_host)

    def _has_room(self, group: Group, growth: int, client_host: str) -> bool:
        """Whether a group may become larger for a client of ``client_host``."""
        self.room.charge(group, client_host)
        return self.room.has(group, growth)

    def _keep(self, group: Group) -> None:
        """A new group is known from the first request that it has not refused."""
        if not group.is_nothing:
            self._put(group, group)

    def _put(self, former: Group, group: Group | None) -> None:
        """Have ``group`` instead of a former one."""
        groups: dict[str, Group] = self.groups[former.home.index]
        self.room.gone(former)
        if group is None:
            groups.pop(former.group_id, None)
        else:
            groups[group.group_id] = group
            self.room.count(group)

    def _take(self, partition: int, groups: dict[str, Group]) -> None:
        """A partition is loaded: these are its groups."""
        self.groups[partition] = groups
        for group in groups.values():
            self.room.count(group)

    def _give_up(self, partition: int) -> list[Group]:
        """Another broker leads a partition. What its groups were."""
        self.homes.pop(partition, None)
        groups = list(self.groups.pop(partition, {}).values())
        for group in groups:
            self.room.gone(group)
        return groups

    def _changed(self, group: Group | None) -> None:
        """An event may have made a group larger or smaller, or nothing at all, which takes no room."""
        if group is not None and self._is_here(group):
            self._put(group, None if group.is_nothing else group)
