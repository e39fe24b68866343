"""How much all groups of a broker take together, and who may still have more of it.

Owns one bound: no number of groups, members or offsets takes more memory. What is taken is counted exactly, as groups
change: to count all of them again would take a tenth of a second. Owns, too, that no client takes all of it: a group
counts for the host whose client made it, and the last of the room is for hosts that have little, and for groups that
are in use. Does not own what each of them takes.
"""

from __future__ import annotations

from cluster.coordinator.group.group import Group
from cluster.coordinator.group.sizes import total_bytes

#: Sixteenths of the room: up to here it is for everyone; from here to the next, for groups that have members or
#: committed offsets; the rest is for hosts of which all groups together take no more than the last one says.
FOR_ALL, FOR_GROUPS_IN_USE, OF_SMALL_HOST = 12, 14, 1


class GroupQuota:
    """``taken_bytes`` is what the groups take that are here, each as it was counted last; ``of_hosts`` by host."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.taken_bytes = 0
        self.of_hosts: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<GroupQuota of {self.most_bytes} bytes, {self.taken_bytes} taken by {len(self.of_hosts)} hosts>"

    def count(self, group: Group) -> None:
        """A group is here, whether there is room for it or not, or has changed."""
        self._add(group, total_bytes(group) - group.counted_bytes)

    def gone(self, group: Group) -> None:
        """A group is no longer here."""
        self._add(group, -group.counted_bytes)

    def charge(self, group: Group, host: str) -> None:
        """A client uses a group of which it is not known whose it is: it was loaded."""
        if not group.client_host and host:
            size_bytes = group.counted_bytes
            self.gone(group)
            group.client_host = host
            self._add(group, size_bytes)

    def has(self, group: Group, growth: int) -> bool:
        """Whether there is room for what makes a group larger; for all of it, if it is not here yet."""
        if growth <= 0:
            return True
        more = total_bytes(group) - group.counted_bytes + growth
        if self.of_hosts.get(group.client_host, 0) + more <= self.most_bytes * OF_SMALL_HOST // 16:
            sixteenths = 16
        elif group.members or group.offsets.committed:
            sixteenths = FOR_GROUPS_IN_USE
        else:
            sixteenths = FOR_ALL
        return self.taken_bytes + more <= self.most_bytes * sixteenths // 16

    def _add(self, group: Group, size_bytes: int) -> None:
        group.counted_bytes += size_bytes
        self.taken_bytes += size_bytes
        of_host = self.of_hosts.pop(group.client_host, 0) + size_bytes
        if of_host:
            self.of_hosts[group.client_host] = of_host
