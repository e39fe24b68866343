"""What the checks of consumer groups are asked about. Plain values; owns no rule.

Everything is of one group in one partition. Offsets of commits and positions are those of the next record, as Kafka's.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from verifier.transactions.state_records import TopicPartition

#: A group and a partition that its members read.
GroupPlace = tuple[str, TopicPartition]

#: When something ended of which no one knows: later than everything.
NEVER_NS = 2**63 - 1


class ResumedMember(NamedTuple):
    """A member was assigned the partition, at ``begin_ns``, and began to read it at ``offset``, known at ``end_ns``.

    ``offset`` is its position, or that of the first record that it was handed, where its client tells no position.
    ``generation``: -1 if its client did not tell it. ``released_ns``: when it no longer had the partition.
    """

    process: str
    session: int
    offset: int
    begin_ns: int
    end_ns: int
    member_id: str = ""
    generation: int = -1
    released_ns: int = NEVER_NS


class OffsetCommit(NamedTuple):
    """An offset that was committed, or may have been (``is_certain`` False: its ``end_ns`` is ``NEVER_NS``).

    ``generation`` is that of its member, -1 if it is not known in which the commit was made.
    """

    process: str
    session: int
    offset: int
    generation: int
    begin_ns: int
    end_ns: int
    is_certain: bool


class OffsetSpan(NamedTuple):
    """Consecutive offsets, both ends among them."""

    first: int
    last: int


class Spans:
    """Offsets as ascending spans that do not touch. Pure."""

    def __init__(self, spans: Sequence[OffsetSpan]) -> None:
        self._spans = list(joined(spans))
        self._lasts = [span.last for span in self._spans]

    def __repr__(self) -> str:
        return f"Spans({len(self._spans)})"

    def __iter__(self) -> Iterator[OffsetSpan]:
        return iter(self._spans)

    def within(self, start: int, end: int) -> Iterator[OffsetSpan]:
        """What lies at ``start`` or above, and below ``end``."""
        if start >= end:
            return
        at = bisect_left(self._lasts, start)
        while at < len(self._spans) and self._spans[at].first < end:
            span = self._spans[at]
            yield OffsetSpan(max(span.first, start), min(span.last, end - 1))
            at += 1

    def without(self, others: Spans) -> Spans:
        """These offsets but for those."""
        left = []
        for span in self._spans:
            first = span.first
            for hole in others.within(span.first, span.last + 1):
                if hole.first > first:
                    left.append(OffsetSpan(first, hole.first - 1))
                first = hole.last + 1
            if first <= span.last:
                left.append(OffsetSpan(first, span.last))
        return Spans(left)

    @property
    def size(self) -> int:
        """How many offsets."""
        return sum(span.last - span.first + 1 for span in self._spans)


def joined(spans: Sequence[OffsetSpan]) -> Iterator[OffsetSpan]:
    """Ascending, with those that overlap or follow each other made one."""
    current: OffsetSpan | None = None
    for span in sorted(spans):
        if current is not None and span.first <= current.last + 1:
            current = OffsetSpan(current.first, max(current.last, span.last))
            continue
        if current is not None:
            yield current
        current = span
    if current is not None:
        yield current


@dataclass(frozen=True, slots=True)
class ReadableLog:
    """What a log has for the members of a group: its first offset, and the offsets of the records they are handed.

    Neither control records nor, for members that read only what is committed, records of aborted transactions are.
    """

    start: int
    records: Spans


@dataclass(frozen=True, slots=True)
class StoredCommits:
    """What ``__consumer_offsets`` has of a group in a partition: every offset of it, and those that may be its last.

    One of a transaction that the log does not decide may count, or not. ``is_whole``: nothing was taken away from the
    log. ``lasts`` is empty if there is none, or if the last one was removed.
    """

    offsets: frozenset[int] = frozenset()
    lasts: frozenset[int] = frozenset()
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class GroupPartition:
    """Everything about a group in a partition, each in the order of its process; ``log`` is None if it is not known.

    ``is_whole``: the histories of all members are there to their ends, so that what they lack did not happen.
    ``stored`` is None if the coordinator's log cannot be judged.
    """

    resumed: Sequence[ResumedMember] = ()
    commits: Sequence[OffsetCommit] = ()
    delivered: Sequence[OffsetSpan] = ()
    log: ReadableLog | None = None
    is_whole: bool = True
    stored: StoredCommits | None = None

    @property
    def certain(self) -> list[OffsetCommit]:
        """The commits that certainly happened."""
        return [commit for commit in self.commits if commit.is_certain]

    @property
    def delivered_again(self) -> int:
        """How many records were handed over again, each counted as often. A group may do so: at least once."""
        times = sum(span.last - span.first + 1 for span in self.delivered)
        return times - Spans(self.delivered).size


@dataclass(frozen=True, slots=True)
class GroupEvidence:
    """All groups of a run."""

    partitions: Mapping[GroupPlace, GroupPartition] = field(default_factory=dict)


def not_fenced(commits: Sequence[OffsetCommit], done: Sequence[OffsetCommit]) -> list[OffsetCommit]:
    """Those that may count when ``done`` had certainly happened.

    A coordinator takes nothing of a generation that is over. So what a member of one tried to commit was overwritten by
    what a later generation committed, or was refused.
    """
    newest = max((commit.generation for commit in done), default=-1)
    return [commit for commit in commits if commit.is_certain or not 0 <= commit.generation < newest]


def newest_before(commits: Sequence[OffsetCommit], time_ns: int) -> int:
    """How many of these, sorted by ``end_ns``, had ended before this time."""
    return bisect_right(commits, time_ns - 1, key=lambda commit: commit.end_ns)
