"""The values that the checks of consumer groups take. Owns no check.

Each value is about one group in one partition. As in Kafka, a committed offset or a position is the offset of the next
record to read. Times are in ns on the monotonic clock.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from verifier.transactions.state_records import TopicPartition

#: A group and a partition that its members read.
GroupPlace = tuple[str, TopicPartition]

#: The end of anything whose end is unknown: later than every time.
NEVER_NS = 2**63 - 1


class ResumedMember(NamedTuple):
    """A member was assigned the partition at ``begin_ns`` and began to read it at ``offset``, known at ``end_ns``.

    ``offset`` is the member's position, or the offset of its first record if its client reports no position.
    ``generation`` is -1 if its client does not report it. ``released_ns`` is when it no longer had the partition.
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
    """An offset that was committed, or may have been: then ``is_certain`` is False and ``end_ns`` is ``NEVER_NS``.

    ``generation`` is the member's generation when it made the commit, -1 if it is unknown.
    """

    process: str
    session: int
    offset: int
    generation: int
    begin_ns: int
    end_ns: int
    is_certain: bool


class OffsetSpan(NamedTuple):
    """Consecutive offsets; both ends are included."""

    first: int
    last: int


class Spans:
    """A set of offsets, kept as ascending spans that neither overlap nor touch. Pure."""

    def __init__(self, spans: Sequence[OffsetSpan]) -> None:
        self._spans = list(joined(spans))
        self._lasts = [span.last for span in self._spans]

    def __repr__(self) -> str:
        return f"Spans({len(self._spans)})"

    def __iter__(self) -> Iterator[OffsetSpan]:
        return iter(self._spans)

    def within(self, start: int, end: int) -> Iterator[OffsetSpan]:
        """The offsets from ``start`` (included) to ``end`` (excluded), as spans."""
        if start >= end:
            return
        at = bisect_left(self._lasts, start)
        while at < len(self._spans) and self._spans[at].first < end:
            span = self._spans[at]
            yield OffsetSpan(max(span.first, start), min(span.last, end - 1))
            at += 1

    def without(self, others: Spans) -> Spans:
        """The offsets of this set that are not in ``others``."""
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
        """The number of offsets."""
        return sum(span.last - span.first + 1 for span in self._spans)


def joined(spans: Sequence[OffsetSpan]) -> Iterator[OffsetSpan]:
    """The spans in ascending order; spans that overlap or touch are merged."""
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
    """The records of a log that members of a group receive, by offset. ``start`` is the first offset of the log.

    Control records are left out. So are records of transactions that were not committed, if the members have
    ``isolation.level=read_committed``.
    """

    start: int
    records: Spans


@dataclass(frozen=True, slots=True)
class StoredCommits:
    """The offsets that ``__consumer_offsets`` has for a group in a partition.

    ``offsets`` has every offset, and ``lasts`` each one that may be the last. There can be several, because an offset
    in a transaction without an end may or may not count. ``lasts`` is empty if the log has no offset, or if the last
    one was removed. ``is_whole``: no record was removed from the log.
    """

    offsets: frozenset[int] = frozenset()
    lasts: frozenset[int] = frozenset()
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class GroupPartition:
    """Everything about a group in a partition. The rows of each process are in the order of its history.

    ``log`` is None if the partition's log is unknown. ``stored`` is None if the coordinator's log cannot be judged.
    ``is_whole``: the histories of all members are complete, so anything that is missing in them did not happen.
    """

    resumed: Sequence[ResumedMember] = ()
    commits: Sequence[OffsetCommit] = ()
    delivered: Sequence[OffsetSpan] = ()
    log: ReadableLog | None = None
    is_whole: bool = True
    stored: StoredCommits | None = None

    @property
    def certain(self) -> list[OffsetCommit]:
        """The commits that the coordinator certainly accepted."""
        return [commit for commit in self.commits if commit.is_certain]

    @property
    def delivered_again(self) -> int:
        """How many deliveries repeated an earlier one. That is legal: a group delivers at least once."""
        times = sum(span.last - span.first + 1 for span in self.delivered)
        return times - Spans(self.delivered).size


@dataclass(frozen=True, slots=True)
class GroupEvidence:
    """All groups of a run, by group and partition."""

    partitions: Mapping[GroupPlace, GroupPartition] = field(default_factory=dict)


def not_fenced(commits: Sequence[OffsetCommit], done: Sequence[OffsetCommit]) -> list[OffsetCommit]:
    """The commits that may still count once the commits in ``done`` have certainly happened.

    A coordinator refuses commits of a generation that has ended. So an uncertain commit of an earlier generation was
    either refused, or overwritten by a commit of the later one.
    """
    newest = max((commit.generation for commit in done), default=-1)
    return [commit for commit in commits if commit.is_certain or not 0 <= commit.generation < newest]


def newest_before(commits: Sequence[OffsetCommit], time_ns: int) -> int:
    """How many of these commits, sorted by ``end_ns``, had ended before this time."""
    return bisect_right(commits, time_ns - 1, key=lambda commit: commit.end_ns)
