"""Decides at which offsets a member may begin to read a partition that it was assigned. Pure.

Owns that rule; the checks ``committed-offset-regression`` and ``resume-position`` use it. A group's committed offset is
a register. Commits write it one after the other, and a member that is assigned the partition reads it once, between its
assignment and its first record. Only time orders these operations: one comes before another if it ended before the
other began. So a member may have read any committed offset, unless another commit had certainly overwritten it before
the assignment. Until the first certain commit, it may also have found no offset; then it begins at the start of the log
(``auto.offset.reset=earliest``). An uncertain commit of a generation that had ended by then counts as overwritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from verifier.groups.model import (
    GroupPartition,
    OffsetCommit,
    ReadableLog,
    ResumedMember,
    newest_before,
    not_fenced,
)

#: Verdicts on a member's first offset: it is a committed one; it is too low; records before it were skipped.
AS_COMMITTED, BELOW, BEYOND = "as committed", "below", "beyond"


class JudgedPosition(NamedTuple):
    """A verdict, with the allowed offset that is closest. ``commit`` wrote that offset; None: the start of the log."""

    verdict: str
    expected: int
    commit: OffsetCommit | None


class CommittedPositions:
    """Judges the first offsets of the members of one group, in one partition with a known log."""

    def __init__(self, partition: GroupPartition, log: ReadableLog) -> None:
        self._log = log
        self._commits = sorted(partition.commits, key=lambda commit: commit.begin_ns)
        self._certain = sorted(partition.certain, key=lambda commit: commit.end_ns)
        #: For each certain commit, in order of their ends: the latest begin of the commits up to it.
        self._latest_begin = [*accumulate((commit.begin_ns for commit in self._certain), max)]

    def __repr__(self) -> str:
        return f"CommittedPositions({len(self._commits)} commits)"

    def judge(self, resumed: ResumedMember) -> JudgedPosition:
        """Whether the member began at an offset that it may have been told."""
        candidates = self._candidates(resumed)
        below = [each for each in candidates if each[0] <= resumed.offset]
        above = [each for each in candidates if each[0] > resumed.offset]
        if below:
            # the closest committed offset skips the fewest records
            expected, commit = max(below, key=lambda each: each[0])
            if not any(self._log.records.within(expected, resumed.offset)):
                return JudgedPosition(AS_COMMITTED, expected, commit)
            if not above:
                return JudgedPosition(BEYOND, expected, commit)
        expected, commit = min(above, key=lambda each: each[0])
        return JudgedPosition(BELOW, expected, commit)

    def _candidates(self, resumed: ResumedMember) -> Sequence[tuple[int, OffsetCommit | None]]:
        """Every offset that the member may have been told, with its commit; never empty."""
        before = newest_before(self._certain, resumed.begin_ns)
        # a commit that had ended before this time is overwritten
        overwritten_ns = self._latest_begin[before - 1] if before else -1
        found: list[tuple[int, OffsetCommit | None]] = [
            (commit.offset, commit)
            for commit in not_fenced(self._commits, self._certain[:before])
            if commit.begin_ns <= resumed.end_ns and commit.end_ns >= overwritten_ns
        ]
        if not before:
            # the log may have begun lower at that time: records may have been deleted since
            found.append((min(self._log.start, resumed.offset), None))
        return found
