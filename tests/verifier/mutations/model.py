"""The shape of a mutation, and what mutations look for in a story. Owns none of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

from tests.support.stories import (
    Batch,
    Partition,
    Story,
)
from verifier.evidence.history import HistoryRow


class Mutation:
    """``change(story, random, target)`` for one of the ``targets`` that a story has for it; without any, impossible."""

    def __init__(self, change: Callable[[Story, Random, Any], None], targets: Callable[[Story], list[Any]]) -> None:
        self._change = change
        self._targets = targets
        self.__name__ = change.__name__
        self.__doc__ = change.__doc__

    def __repr__(self) -> str:
        return f"Mutation({self.__name__})"

    def is_possible(self, story: Story) -> bool:
        """Whether there is anything in this story that it could change."""
        return bool(self._targets(story))

    def __call__(self, story: Story, random: Random) -> None:
        """Change the story. Raises ``IndexError`` if that is impossible."""
        self._change(story, random, random.choice(self._targets(story)))


def one_of(targets: Callable[[Story], list[Any]]) -> Callable[[Callable[[Story, Random, Any], None]], Mutation]:
    """The function is a mutation of one of these targets."""
    return lambda change: Mutation(change, targets)


def a_partition(fits: Callable[[Partition], object] = lambda place: True) -> Callable[[Story], list[Partition]]:
    """Targets: the partitions that fit."""
    return lambda story: [place for _, place in sorted(story.partitions.items()) if fits(place)]


def a_row(process: str, fits: Callable[[HistoryRow], object]) -> Callable[[Story], list[tuple[list[HistoryRow], int]]]:
    """Targets: the rows that fit, as the list they are in and where, of processes whose names begin so."""
    return lambda story: [
        (rows, index)
        for name, rows in story.rows.items()
        if name.startswith(process)
        for index, each in enumerate(rows)
        if fits(each)
    ]


def a_history(*processes: str) -> Callable[[Story], list[list[HistoryRow]]]:
    """Targets: what processes read whose names begin so, if they read anything."""
    return lambda story: [
        rows
        for name, rows in story.rows.items()
        if name.startswith(processes) and any(each.f == "poll" for each in rows)
    ]


def number_of(story: Story, place: Partition) -> int:
    return next(number for number, each in story.partitions.items() if each is place)


def leader_log(place: Partition) -> list[Batch]:
    return place.replicas[place.leader]


def written_replicas(place: Partition) -> list[list[Batch]]:
    """The replicas that hold anything."""
    return [batches for batches in place.replicas.values() if batches]


def indexes_where(place: Partition, fits: Callable[[Batch], object]) -> list[int]:
    """The batches of the leader that fit, by index."""
    return [index for index, batch in enumerate(leader_log(place)) if fits(batch)]


def all_or_one(replicas: list[list[Batch]], random: Random) -> list[list[Batch]]:
    """All of these replicas, or one of them."""
    return replicas if random.random() < 0.5 else [random.choice(replicas)]


def replicas_with(
    place: Partition, index: int, fits: Callable[[Batch], object] = lambda batch: True
) -> list[list[Batch]]:
    """The replicas that hold a batch there that fits."""
    return [batches for batches in place.replicas.values() if index < len(batches) and fits(batches[index])]


def unlike_next(batches: list[Batch]) -> list[int]:
    """The batches of a replica that are not the same as the one behind them, by index."""
    return [index for index, (batch, after) in enumerate(pairwise(batches)) if batch != after]


def untorn(place: Partition) -> list[int]:
    """The brokers whose file ends with a whole batch."""
    return [broker for broker in sorted(place.replicas) if not place.tails.get(broker)]


def has_values(batch: Batch) -> bool:
    return bool(batch.values)


def has_two_values(batch: Batch) -> bool:
    return len(batch.values) > 1


def is_plain(batch: Batch) -> bool:
    return bool(batch.values) and batch.codec == "none"
