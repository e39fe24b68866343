"""Mutations of batch headers: epochs, sequences, producers and times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from tests.support.stories import (
    MADE_MS,
    PRODUCER_IDS_BELOW,
    Batch,
    Partition,
    Story,
)
from tests.verifier.mutations.model import (
    a_partition,
    all_or_one,
    indexes_where,
    leader_log,
    one_of,
    replicas_with,
)


def _change_headers(random: Random, place: Partition, fits: Callable[[Batch], object], fields: Any) -> None:
    """A batch that fits has other header fields, on all replicas or one; ``fields`` gives them for a batch."""
    index = random.choice(indexes_where(place, fits))
    chosen = all_or_one(replicas_with(place, index), random)
    changed = fields(chosen[0][index])
    for batches in chosen:
        batches[index] = replace(batches[index], **changed)


@one_of(a_partition(leader_log))
def change_epoch(story: Story, random: Random, place: Partition) -> None:
    """A batch, or all from it on, is of another leader epoch."""
    epochs = (0, 1, 2, 3)
    if random.random() < 0.5:
        _change_headers(
            random,
            place,
            lambda batch: True,
            lambda batch: {"leader_epoch": random.choice([each for each in epochs if each != batch.leader_epoch])},
        )
        return
    index = random.randrange(len(leader_log(place)))
    chosen = all_or_one(replicas_with(place, index), random)
    epoch = random.choice([each for each in epochs if each != chosen[0][index].leader_epoch])
    for batches in chosen:
        batches[index:] = [replace(batch, leader_epoch=epoch) for batch in batches[index:]]


@one_of(a_partition(lambda place: indexes_where(place, lambda batch: batch.base_sequence >= 0)))
def change_sequence(story: Story, random: Random, place: Partition) -> None:
    """A batch has another base sequence, or another producer epoch: ahead, behind, that of another, or a new one."""
    moves = [-3, -1, 1, 3, 2**30, 2**31 - 1]

    def fields(batch: Batch) -> dict[str, Any]:
        sequence = (batch.base_sequence + random.choice(moves)) % 2**31
        return random.choice([{"base_sequence": sequence}, {"producer_epoch": batch.producer_epoch + 1}])

    _change_headers(random, place, lambda batch: batch.base_sequence >= 0, fields)


@one_of(a_partition(lambda place: indexes_where(place, lambda batch: batch.base_sequence >= 0)))
def raise_producer_epoch(story: Story, random: Random, place: Partition) -> None:
    """A producer begins a new epoch at sequence 0, and keeps it or falls back to the old one."""
    first = random.choice(indexes_where(place, lambda batch: batch.base_sequence >= 0))
    chosen, back = replicas_with(place, first), random.random() < 0.5
    begun = chosen[0][first]
    for batches in chosen:
        mine = [index for index in range(first, len(batches)) if batches[index].producer_id == begun.producer_id]
        for index in mine[: 1 if back else None]:
            sequence = max(0, batches[index].base_sequence - begun.base_sequence)
            batches[index] = replace(batches[index], producer_epoch=begun.producer_epoch + 1, base_sequence=sequence)


@one_of(a_partition(leader_log))
def change_producer(story: Story, random: Random, place: Partition) -> None:
    """A batch is of a producer that another stream has, that nobody was given, or of none."""

    def fields(batch: Batch) -> dict[str, Any]:
        others = [each for each in (-2, -1, 1001, 1002, PRODUCER_IDS_BELOW) if each != batch.producer_id]
        return {"producer_id": random.choice(others)}

    _change_headers(random, place, lambda batch: True, fields)


@one_of(a_partition(leader_log))
def change_time(story: Story, random: Random, place: Partition) -> None:
    """A batch is older or newer, within the run or not."""
    moves = [-1, 5, 10**6, -(10**6), 10**12, -MADE_MS, -MADE_MS - 1]
    _change_headers(
        random,
        place,
        lambda batch: True,
        lambda batch: {"timestamp_ms": batch.timestamp_ms + random.choice(moves)},
    )
