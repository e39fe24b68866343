"""Where a member stands: its partitions, what it was delivered of each, and what it has committed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class Standing:
    """``next_offsets`` has the offset after the last record delivered, of each partition that has had one."""

    def __init__(self) -> None:
        self.next_offsets: dict[int, int] = {}
        self._committed: dict[int, int] = {}
        self.assigned: set[int] = set()

    def __repr__(self) -> str:
        return f"Standing({sorted(self.assigned)}, {self.next_offsets})"

    def take(self, partitions: Iterable[int]) -> None:
        """These are the member's; where they begin is not known."""
        for partition in partitions:
            self.assigned.add(partition)
            self.next_offsets.pop(partition, None)
            self._committed.pop(partition, None)

    def give_away(self, partitions: Iterable[int]) -> dict[int, int]:
        """They are another's; how far each had come, -1 if nowhere."""
        given = {}
        for partition in partitions:
            if partition in self.assigned:
                self.assigned.remove(partition)
                self._committed.pop(partition, None)
                given[partition] = self.next_offsets.pop(partition, -1)
        return given

    def delivered(self, partition: int, offset: int) -> None:
        """The record at this offset was handed over."""
        self.next_offsets[partition] = offset + 1

    def uncommitted(self, partitions: Iterable[int] | None = None) -> dict[int, int]:
        """What is to be committed, of these or all."""
        wanted = self.assigned if partitions is None else set(partitions)
        return {
            partition: offset
            for partition, offset in sorted(self.next_offsets.items())
            if partition in wanted and self._committed.get(partition) != offset
        }

    def committed(self, offsets: Mapping[int, int]) -> None:
        """These were committed."""
        self._committed.update({each: offset for each, offset in offsets.items() if each in self.assigned})
