"""Tracks a member's partitions, and the delivered and committed offsets of each. Pure. Commits nothing itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class Standing:
    """The offsets of one member. ``next_offsets`` has the offset after the last delivered record, by partition."""

    def __init__(self) -> None:
        self.next_offsets: dict[int, int] = {}
        self._committed: dict[int, int] = {}
        self.assigned: set[int] = set()

    def __repr__(self) -> str:
        return f"Standing({sorted(self.assigned)}, {self.next_offsets})"

    def take(self, partitions: Iterable[int]) -> None:
        """Add these partitions. Where the member begins to read them is not known yet."""
        for partition in partitions:
            self.assigned.add(partition)
            self.next_offsets.pop(partition, None)
            self._committed.pop(partition, None)

    def give_away(self, partitions: Iterable[int]) -> dict[int, int]:
        """Remove these partitions. Returns the next offset of each, -1 if no record was delivered."""
        given = {}
        for partition in partitions:
            if partition in self.assigned:
                self.assigned.remove(partition)
                self._committed.pop(partition, None)
                given[partition] = self.next_offsets.pop(partition, -1)
        return given

    def delivered(self, partition: int, offset: int) -> None:
        """Note that the record at this offset was delivered."""
        self.next_offsets[partition] = offset + 1

    def uncommitted(self, partitions: Iterable[int] | None = None) -> dict[int, int]:
        """The offsets to commit, for these partitions or for all."""
        wanted = self.assigned if partitions is None else set(partitions)
        return {
            partition: offset
            for partition, offset in sorted(self.next_offsets.items())
            if partition in wanted and self._committed.get(partition) != offset
        }

    def committed(self, offsets: Mapping[int, int]) -> None:
        """Note that these offsets were committed."""
        self._committed.update({each: offset for each, offset in offsets.items() if each in self.assigned})
