"""Where a member may begin to read a partition that it is assigned. Pure; the checks of groups ask it.

A group's committed offset is a register: commits write it, one after the other, and a member that is assigned the
partition reads it once, between its assignment and its first record. Nothing else orders them but time: what had ended
before something else began came before it. So a member may have read every committed offset that was not overwritten
for certain before it was assigned the partition, and it may have read "nothing" as long as nothing was committed for
certain before that; then it begins at the start of the log (``auto.offset.reset=earliest``). What may have been
committed in a generation that was over by then is overwritten, too.
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

#: The verdict on one resumption: as committed; below one that it may have read; beyond all of them.
AS_COMMITTED, BELOW, BEYOND = "as committed", "below", "beyond"


class JudgedPosition(NamedTuple):
    """A verdict, with the offset that comes nearest to what the member did. ``commit`` is None for the log's start."""

    verdict: str
    expected: int
    commit: OffsetCommit | None


class CommittedPositions:
    """Answers for one group in one partition whose log is known."""

    def __init__(self, partition: GroupPartition, log: ReadableLog) -> None:
        self._log = log
        self._commits = sorted(partition.commits, key=lambda commit: commit.begin_ns)
        self._certain = sorted(partition.certain, key=lambda commit: commit.end_ns)
        #: Of the commits up to each one, by their ends, the latest begin.
        self._latest_begin = [*accumulate((commit.begin_ns for commit in self._certain), max)]

    def __repr__(self) -> str:
        return f"CommittedPositions({len(self._commits)} commits)"

    def judge(self, resumed: ResumedMember) -> JudgedPosition:
        """Whether the member began where it may."""
        candidates = self._candidates(resumed)
        below = [each for each in candidates if each[0] <= resumed.offset]
        above = [each for each in candidates if each[0] > resumed.offset]
        if below:
            # the nearest one passes over the least
            expected, commit = max(below, key=lambda each: each[0])
            if not any(self._log.records.within(expected, resumed.offset)):
                return JudgedPosition(AS_COMMITTED, expected, commit)
            if not above:
                return JudgedPosition(BEYOND, expected, commit)
        expected, commit = min(above, key=lambda each: each[0])
        return JudgedPosition(BELOW, expected, commit)

    def _candidates(self, resumed: ResumedMember) -> Sequence[tuple[int, OffsetCommit | None]]:
        """Every offset that the member may have been told; there is always one."""
        before = newest_before(self._certain, resumed.begin_ns)
        # whatever had ended before this one began is overwritten
        overwritten_ns = self._latest_begin[before - 1] if before else -1
        found: list[tuple[int, OffsetCommit | None]] = [
            (commit.offset, commit)
            for commit in not_fenced(self._commits, self._certain[:before])
            if commit.begin_ns <= resumed.end_ns and commit.end_ns >= overwritten_ns
        ]
        if not before:
            # what lay below the start of the log when the member began may have been deleted since
            found.append((min(self._log.start, resumed.offset), None))
        return found
