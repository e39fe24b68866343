"""ProducerMarks: what was known of all producers of a log when it ended there, so that it can be cut back to it.

Owns how many marks are kept and which go first. Does not own the entries (``producers.py``), nor when a log is cut.

A roll is marked, and so is a place between two, now and then: a segment may have millions of batches. Entries are
immutable, so a mark is one copy of a dictionary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cluster.log.sequence import ProducerEntry

#: How many marks of each kind are kept: truncations reach back a few segments at most, and nearly all a few seconds.
MARKS = 8
#: Records between two marks within a segment. To replay that many batches takes some ten milliseconds.
MARK_RECORDS = 10_000


class ProducerMark(NamedTuple):
    """The entries with the log ending at ``offset``."""

    offset: int
    #: They do not change.
    entries: Mapping[int, ProducerEntry]
    is_roll: bool


class ProducerMarks:
    """Of one log, the oldest first."""

    def __init__(self) -> None:
        self._marks: list[ProducerMark] = []

    def __repr__(self) -> str:
        return f"ProducerMarks({[mark.offset for mark in self._marks]})"

    def __len__(self) -> int:
        return len(self._marks)

    def __iter__(self) -> Iterator[ProducerMark]:
        return iter(self._marks)

    @property
    def newest(self) -> ProducerMark | None:
        return self._marks[-1] if self._marks else None

    def is_due(self, offset: int) -> bool:
        """Whether much has been written since the last mark."""
        newest = self._marks[-1].offset if self._marks else 0
        return offset - newest >= MARK_RECORDS

    def add(self, offset: int, entries: Mapping[int, ProducerEntry], *, is_roll: bool) -> Mapping[int, ProducerEntry]:
        """Remember a copy of ``entries``, and return it. The oldest mark of the same kind may go."""
        mark = ProducerMark(offset, dict(entries), is_roll)
        self._marks.append(mark)
        of_kind = [index for index, each in enumerate(self._marks) if each.is_roll is is_roll]
        if len(of_kind) > MARKS:
            del self._marks[of_kind[0]]
        return mark.entries

    def drop_above(self, offset: int) -> None:
        while self._marks and self._marks[-1].offset > offset:
            self._marks.pop()
