"""How much all groups of a broker take together.

Owns one bound: no number of groups, members or offsets takes more memory. Does not own what each of them takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cluster.coordinator.group.group import GROUP_BYTES, Group


class Room:
    """``about`` is never less than what is taken: what goes is counted only when there seems to be no room."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self.about = 0

    def __repr__(self) -> str:
        return f"<Room of {self._most_bytes} bytes, {self.about} taken at most>"

    def taken(self, groups: Iterable[Group]) -> None:
        """These are here, whether there is room for them or not."""
        self.about += sum(group.total_bytes for group in groups)

    def takes(self, growth: int, groups: Callable[[], Iterable[Group]]) -> bool:
        """Whether there is room for what makes a group larger, or begins one; ``groups`` are those there are."""
        if growth <= 0:
            return True
        growth += GROUP_BYTES
        if self.about + growth > self._most_bytes:
            self.about = sum(group.total_bytes for group in groups())
            if self.about + growth > self._most_bytes:
                return False
        self.about += growth
        return True
