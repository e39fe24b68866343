"""Planted examples for the anomalies of consumer groups, each with its nearest legal neighbor.

A group ``g`` reads the only partition, whose load is at offsets 0 to 23: its first member the first half, in generation
1, and its second member the rest. The many small cases are in ``tests/verifier/groups``; these are whole runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.support.offset_bytes import committed, in_transaction
from tests.support.settings import settings
from tests.support.stories import SECOND, SENTINEL_STREAM, TOPIC, Batch, Story
from tests.support.transaction_bytes import ABORT, COMMIT, TRANSACTIONAL, marker
from tests.verifier.planted.headers import both
from tests.verifier.planted.model import Planted
from verifier.evidence.history import Function, HistoryOutcome, HistoryRow
from verifier.evidence.output import OUTPUT_TOPIC

PROCESS = "members-1"
#: As many as a run has, unless its brokers are configured otherwise.
PARTITIONS_OF_OFFSETS = 6


@dataclass(frozen=True)
class Group:
    """What the members did: where each began, what it was handed last, and what became of the first one's commit."""

    begins: tuple[int, int] = (0, 12)
    first_handed: int = 12
    commit: HistoryOutcome = "ok"
    #: Of whoever commits last, after all that: the generation, and the offset; None for no one.
    late: tuple[int, int] | None = None
    #: What a member of a generation before all others had tried to commit.
    earlier: int | None = None

    def rows(self, story: Story) -> Iterator[HistoryRow]:
        if self.earlier is not None:
            yield member(3, 0, 100)
            yield of(3, "offset-commit", self.earlier, 101, "info")
        yield member(1, 1, 110)
        yield of(1, "resume", self.begins[0], 110)
        yield from handed(story, 1, self.begins[0], self.first_handed)
        yield of(1, "offset-commit", 12, 120, self.commit)._replace(incarnation=1)
        yield of(1, "revoke", self.first_handed, 121)
        yield member(2, 2, 130)
        yield of(2, "resume", self.begins[1], 130)
        yield from handed(story, 2, self.begins[1], 24)
        yield of(2, "offset-commit", 24, 140)._replace(incarnation=2)
        if self.late is not None:
            yield of(1, "offset-commit", self.late[1], 150)._replace(incarnation=self.late[0])


def member(session: int, generation: int, at: int) -> HistoryRow:
    return HistoryRow(
        "member", "ok", error=f"g member-{session}", session=session, incarnation=generation, **when(at, at)
    )


def of(session: int, f: Function, offset: int, at: int, kind: HistoryOutcome = "ok") -> HistoryRow:
    return HistoryRow(f, kind, TOPIC, 0, first_offset=offset, last_offset=offset, session=session, **when(at, at + 1))


def when(begin: int, end: int) -> dict[str, Any]:
    """In tenths of a second: the last value is sent at 2.1 s."""
    return {"invoke_ns": begin * SECOND // 10, "complete_ns": end * SECOND // 10}


def handed(story: Story, session: int, start: int, end: int) -> Iterator[HistoryRow]:
    """What the live reader was handed of these offsets, handed to a member."""
    for each in story.rows["reader-1"]:
        if each.f == "poll" and start <= each.first_offset < end:
            yield each._replace(session=session, **when(111, 112))


def group(members: Group) -> Callable[[Story], None]:
    def plant(story: Story) -> None:
        story.rows[PROCESS] = list(members.rows(story))

    return plant


def pipeline(*transactions: tuple[tuple[tuple[int, int], ...], int]) -> Callable[[Story], None]:
    """The group's output, transaction by transaction: the values, and how it ended."""

    def plant(story: Story) -> None:
        group(Group())(story)
        for values, kind in transactions:
            base = story.output[-1].next_offset if story.output else 0
            story.output.append(Batch(base, values, producer_id=9, base_sequence=0, attributes=TRANSACTIONAL))
            story.output.append(marker(base + len(values), kind, 9))

    return plant


def values_at(first: int, last: int) -> tuple[tuple[int, int], ...]:
    """The values at these offsets of the input, where two streams take turns, three values each."""
    return tuple((1 + offset // 3 % 2, offset // 6 * 3 + offset % 3) for offset in range(first, last + 1))


def coordinated(*batches: Batch) -> Callable[[Story], None]:
    """The group's coordinator has these batches, one behind the other."""

    def plant(story: Story) -> None:
        group(Group())(story)
        log = story.consumer_offsets.setdefault(0, [])
        for batch in batches:
            log.append(replace(batch, base_offset=log[-1].next_offset if log else 0))

    return plant


def empty_logs(count: int) -> Callable[[Story], None]:
    """So many partitions of the coordinators' topic are there, and nothing is in them. The last commit is certain."""

    def plant(story: Story) -> None:
        group(Group(commit="info"))(story)
        story.consumer_offsets = {number: [] for number in range(count)}

    return plant


def may_lose_records(story: Story) -> None:
    """The run's topic may; the coordinators' topics may not."""
    story.settings = settings(unclean_leader_election=True)


def stored(*offsets: int | None) -> Batch:
    return committed(0, "g", TOPIC, 0, *offsets)


def shared(released_at: int | None, generation: int = 1) -> Callable[[Story], None]:
    """Another member gets the partition in the generation of the first one, at 11.5 s, and gives it away at once."""

    def plant(story: Story) -> None:
        first, *others = Group().rows(story)
        rows = [first, *others]
        if released_at is not None:
            rows.append(of(1, "revoke", 3, released_at))
        rows += [member(4, generation, 115), of(4, "resume", 0, 115), of(4, "revoke", 0, 116)]
        story.rows[PROCESS] = rows

    return plant


PLANTED: Mapping[str, Planted] = {
    "a group whose offsets are stored, some of them in transactions": Planted(
        coordinated(
            stored(12, 6, 12),
            in_transaction(stored(20), 9),
            marker(0, ABORT, 9),
            in_transaction(stored(24), 9),
            marker(0, COMMIT, 9),
            in_transaction(stored(3), 9),
        )
    ),
    "a group whose last offset is not stored": Planted(
        coordinated(stored(12), in_transaction(stored(24), 9), marker(0, ABORT, 9)),
        {("lost-offset-commit", "missing"): {"count": 1, "partition": 0, "offset": 24}},
        neighbor="a group whose offsets are stored, some of them in transactions",
    ),
    "a group whose last offset is not stored, beside a topic that may lose records": Planted(
        both(coordinated(stored(12), in_transaction(stored(24), 9), marker(0, ABORT, 9)), may_lose_records),
        {("lost-offset-commit", "missing"): {"count": 1, "partition": 0, "offset": 24}},
        neighbor="a group whose offsets are stored, some of them in transactions",
    ),
    "a group whose last stored offset is a former one": Planted(
        coordinated(stored(24, 12)),
        {("lost-offset-commit", "regressed"): {"count": 1, "partition": 0, "offset": 12}},
        neighbor="a group whose offsets are stored, some of them in transactions",
    ),
    "a group of whose coordinators' topic a part is not there": Planted(empty_logs(PARTITIONS_OF_OFFSETS - 1)),
    "a group of which nothing at all is stored": Planted(
        empty_logs(PARTITIONS_OF_OFFSETS),
        {("lost-offset-commit", "missing"): {"count": 1, "partition": 0, "offset": 24}},
        neighbor="a group of whose coordinators' topic a part is not there",
    ),
    "a member that is assigned what was given away": Planted(shared(released_at=114)),
    "a member that is assigned in a later generation what another one has": Planted(shared(None, generation=2)),
    "two members that are assigned one partition": Planted(
        shared(released_at=None),
        {("double-assignment", None): {"count": 1, "partition": 0, "offset": 0}},
        neighbor="a member that is assigned what was given away",
    ),
    "a group that hands over, and delivers three records twice": Planted(group(Group(first_handed=15))),
    "a group that begins again, as its commit has an unknown outcome": Planted(
        group(Group(begins=(0, 0), commit="info"))
    ),
    "a group that begins where a commit of unknown outcome may have been": Planted(
        group(Group(begins=(0, 15), first_handed=15, earlier=15))
    ),
    "a group that begins at first where a commit of unknown outcome may have been": Planted(
        group(Group(begins=(3, 12), earlier=3))
    ),
    "a member that commits less than before": Planted(group(Group(late=(2, 15)))),
    "a group that commits past what it was never handed": Planted(
        group(Group(first_handed=9)),
        {("group-completeness", None): {"count": 1, "partition": 0, "offset": 9}},
        neighbor="a group that hands over, and delivers three records twice",
    ),
    "a group that begins below its committed offset": Planted(
        group(Group(begins=(0, 6))),
        {("committed-offset-regression", "resumed"): {"count": 1, "partition": 0, "offset": 6}},
        neighbor="a group that begins again, as its commit has an unknown outcome",
    ),
    "a group that begins beyond its committed offset": Planted(
        group(Group(begins=(0, 15), first_handed=15)),
        {("resume-position", "skipped"): {"count": 1, "partition": 0, "offset": 15}},
        neighbor="a group that begins where a commit of unknown outcome may have been",
    ),
    "a group that does not begin at the start of the log": Planted(
        group(Group(begins=(3, 12))),
        {("resume-position", "reset"): {"count": 1, "partition": 0, "offset": 3}},
        neighbor="a group that begins at first where a commit of unknown outcome may have been",
    ),
    "a pipeline": Planted(
        pipeline((values_at(0, 11), COMMIT), (values_at(12, 23), ABORT), (values_at(12, 23), COMMIT))
    ),
    "a pipeline that loses, repeats and goes ahead": Planted(
        pipeline(
            (values_at(0, 4), COMMIT),
            (values_at(6, 11) + values_at(3, 3), COMMIT),
            ((*values_at(12, 23), (SENTINEL_STREAM, 0)), COMMIT),
        ),
        {
            ("pipeline-exactly-once", "missing"): {"count": 1, "topic": TOPIC, "partition": 0, "offset": 5},
            ("pipeline-exactly-once", "twice"): {"count": 1, "topic": OUTPUT_TOPIC, "partition": 0, "offset": 12},
            ("pipeline-exactly-once", "ahead"): {"count": 1, "topic": OUTPUT_TOPIC, "partition": 0, "offset": 26},
        },
        neighbor="a pipeline",
    ),
    "a pipeline that writes what it did not read": Planted(
        pipeline((values_at(0, 11), COMMIT), ((*values_at(12, 23), (1, 999)), COMMIT)),
        {
            ("pipeline-exactly-once", "without-input"): {
                "count": 1,
                "topic": OUTPUT_TOPIC,
                "partition": 0,
                "offset": 25,
            },
        },
        neighbor="a pipeline",
    ),
    "a commit of a generation that is over": Planted(
        group(Group(late=(1, 15))),
        {("committed-offset-regression", "stale-generation"): {"count": 1, "partition": 0, "offset": 15}},
        neighbor="a member that commits less than before",
    ),
}
