"""Told: what programs did and what they were told: transactions, commits of offsets, what was delivered to whom.

Owns these records, which programs fill in while a simulation runs. Does not own the judgment. Times are virtual
seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tests.simulation.seen import TopicPartition


@dataclass
class Transaction:
    """One of a program. ``is_committed`` is what it was told, None if it does not know; ``life`` is the number of the
    producer among those with its transactional id. ``tag`` marks the offsets that it committed for a group."""

    transactional_id: str
    life: int
    tag: str
    values: dict[bytes, TopicPartition] = field(default_factory=dict)
    acknowledged: dict[bytes, int] = field(default_factory=dict)
    is_committed: bool | None = None
    #: When its program asked for the commit.
    ending_s: float = 0.0


@dataclass
class Commit:
    """Offsets that a member committed under a tag of its own. ``is_stored`` is what it was told, None if nothing."""

    group_id: str
    tag: str
    offsets: dict[TopicPartition, int]
    is_stored: bool | None = None
    #: When it was told so.
    told_s: float = 0.0


class Start(NamedTuple):
    """Where a member began to read what it was assigned at a time: the first offset that it was given."""

    group_id: str
    key: TopicPartition
    assigned_s: float
    offset: int


class StableEnd(NamedTuple):
    """Where a partition ended for a reader of committed records, by its leader."""

    key: TopicPartition
    told_s: float
    offset: int


class Look(NamedTuple):
    """What the coordinator said is committed for a partition, by its tag; None: nothing."""

    group_id: str
    key: TopicPartition
    asked_s: float
    told_s: float
    tag: str | None


@dataclass
class Told:
    """All of one simulation."""

    transactions: list[Transaction] = field(default_factory=list)
    #: Transactional id -> when each of its producers was told that it is the only one.
    fences: dict[str, list[float]] = field(default_factory=dict)
    commits: list[Commit] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    ends: list[StableEnd] = field(default_factory=list)
    #: (group, partition) -> offset -> the value that was delivered.
    delivered: dict[tuple[str, TopicPartition], dict[int, bytes]] = field(default_factory=dict)
    #: Groups whose members are given what is committed alone.
    only_committed: set[str] = field(default_factory=set)
    #: Partition -> the (offset, value)s of each reader of committed records.
    read: dict[TopicPartition, list[list[tuple[int, bytes, int]]]] = field(default_factory=dict)

    def begin(self, transactional_id: str, tag: str) -> Transaction:
        """Another transaction of the producer that has an id now."""
        begun = Transaction(transactional_id, len(self.fences[transactional_id]) - 1, tag)
        self.transactions.append(begun)
        return begun

    def initialized(self, transactional_id: str, now_s: float) -> None:
        """A producer has an id now, and nobody else."""
        self.fences.setdefault(transactional_id, []).append(now_s)
