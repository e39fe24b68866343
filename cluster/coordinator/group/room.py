"""How much all groups of a broker take together.

Owns one bound: no number of groups, members or offsets takes more memory. What is taken is counted exactly, as groups
change: to count all of them again would take a tenth of a second. Does not own what each of them takes.
"""

from __future__ import annotations

from cluster.coordinator.group.group import Group
from cluster.coordinator.group.sizes import total_bytes


class Room:
    """``taken_bytes`` is what the groups take that are here, each as it was counted last."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.taken_bytes = 0

    def __repr__(self) -> str:
        return f"<Room of {self.most_bytes} bytes, {self.taken_bytes} taken>"

    def count(self, group: Group) -> None:
        """A group is here, whether there is room for it or not, or has changed."""
        size_bytes = total_bytes(group)
        self.taken_bytes += size_bytes - group.counted_bytes
        group.counted_bytes = size_bytes

    def gone(self, group: Group) -> None:
        """A group is no longer here."""
        self.taken_bytes -= group.counted_bytes
        group.counted_bytes = 0

    def has(self, group: Group, growth: int) -> bool:
        """Whether there is room for what makes a group larger; for all of it, if it is not here yet."""
        uncounted = total_bytes(group) - group.counted_bytes
        return growth <= 0 or self.taken_bytes + uncounted + growth <= self.most_bytes
