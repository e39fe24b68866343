"""Segments: the segments of one log in order, the last one active.

Owns finding the one that holds an offset, and adding and dropping them from the ends. Does not own what is in them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from cluster.log.segment import Segment


class Segments:
    """At least one segment, ascending in base offset."""

    def __init__(self, segments: list[Segment]) -> None:
        if not segments:
            raise ValueError("a log has at least one segment")
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self.active = segments[-1]

    def __repr__(self) -> str:
        return f"Segments({len(self._segments)}, [{self._bases[0]}, {self.active.next_offset}))"

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._segments)

    @property
    def base_offsets(self) -> list[int]:
        return list(self._bases)

    def from_offset(self, offset: int) -> Iterator[Segment]:
        """The segment that ``offset`` belongs to, and those after it."""
        if offset >= self.active.base_offset:
            yield self.active
            return
        start = max(0, bisect_right(self._bases, offset) - 1)
        yield from self._segments[start:]

    def before(self, offset: int) -> Segment:
        """The last segment that ``drop_from_end(offset)`` leaves."""
        return self._segments[max(0, bisect_left(self._bases, offset) - 1)]

    def add(self, segment: Segment) -> None:
        """A new active segment."""
        self._segments.append(segment)
        self._bases.append(segment.base_offset)
        self.active = segment

    def drop_from_end(self, offset: int) -> None:
        """Delete the segments that begin at ``offset`` or above, but never the first; the newest goes first."""
        while len(self._segments) > 1 and self._bases[-1] >= offset:
            self._bases.pop()
            self._segments.pop().delete()
        self.active = self._segments[-1]

    def any_below(self, offset: int) -> bool:
        """Whether ``retire_from_start`` would retire any."""
        return len(self._bases) > 1 and self._bases[1] <= offset

    def retire_from_start(self, offset: int) -> Iterator[tuple[Segment, list[str]]]:
        """Retire segments that end at or below ``offset``, oldest first, but never the active one.

        Yields each that is gone with its files' names. Raises ``OSError``.
        """
        while self.any_below(offset):
            paths = self._segments[0].retire()
            self._bases.pop(0)
            yield self._segments.pop(0), paths

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """Put ``new`` in the place of neighbors that do not include the active one."""
        at = self._segments.index(old[0])
        self._segments[at : at + len(old)] = [new]
        self._bases[at : at + len(old)] = [new.base_offset]

    def replace_all(self, segment: Segment) -> None:
        """Take ``segment`` as the only one; the others were deleted before."""
        self._segments = [segment]
        self._bases = [segment.base_offset]
        self.active = segment

    def delete_all(self) -> None:
        """Delete the files of all segments, the newest first. ``replace_all`` must follow."""
        for segment in reversed(self._segments):
            segment.delete()

    def close(self) -> None:
        for segment in self._segments:
            segment.close()
