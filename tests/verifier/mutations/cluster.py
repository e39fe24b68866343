"""Mutations of a cluster's course: elections, faults, watermarks, deletions, tails and how brokers ended."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.support.stories import (
    SECOND,
    TOPIC,
    Batch,
    Partition,
    Story,
)
from tests.verifier.mutations.model import (
    a_partition,
    leader_log,
    number_of,
    one_of,
    untorn,
)


@one_of(a_partition(untorn))
def torn_tail_above(story: Story, random: Random, place: Partition) -> None:
    """Legal: a killed broker leaves half a batch behind everything that is committed."""
    tail = Batch(place.high_watermark, ((77, 0),)).encode()
    place.tails[random.choice(untorn(place))] = tail[: random.randrange(1, len(tail))]


@one_of(a_partition())
def zombie_tail(story: Story, random: Random, place: Partition) -> None:
    """Legal: a replica holds batches above the high watermark that nobody else has."""
    broker = random.choice(sorted(place.replicas))
    place.replicas[broker].append(Batch(place.high_watermark, ((1, 999_999),)))
    if random.random() < 0.5:
        place.log_end_offsets[broker] += 1


@one_of(a_partition(lambda place: len(place.replicas) > 1))
def two_tails(story: Story, random: Random, place: Partition) -> None:
    """Two replicas hold different batches above the high watermark, of one epoch or of two."""
    epoch = random.choice([1, 2])
    for broker, sequence in zip(random.sample(sorted(place.replicas), 2), (70, 71), strict=True):
        place.replicas[broker].append(Batch(place.high_watermark, ((1, sequence),), leader_epoch=epoch))
        epoch = random.choice([epoch, 2])


@one_of(a_partition(lambda place: place.high_watermark > 0))
def lower_high_watermark(story: Story, random: Random, place: Partition) -> None:
    """The final high watermark lies somewhere within the log."""
    place.high_watermark = random.randrange(place.high_watermark)


@one_of(a_partition(lambda place: place.high_watermark > 1))
def raise_log_start(story: Story, random: Random, place: Partition) -> None:
    """The log no longer starts at 0, as was asked for, or further than that, or by retention, or for no reason."""
    partition = number_of(story, place)
    place.log_start_offset = random.randrange(1, place.high_watermark)
    for broker in place.replicas:
        said = max(place.log_start_offset + random.choice([-2, 0, 0, 3]), 0)
        if random.random() < 0.5:
            story.delete_below(partition, said)
        if random.random() < 0.7:
            story.begins_at(partition, said, broker)
    if random.random() < 0.2:
        story.topic_config = {"retention.ms": "1000"}
    if random.random() < 0.5:
        for broker, batches in place.replicas.items():
            place.replicas[broker] = [batch for batch in batches if batch.next_offset > place.log_start_offset]


@one_of(a_partition(lambda place: place.status == "ok"))
def make_unavailable(story: Story, random: Random, place: Partition) -> None:
    """A partition never came back: nothing about it is judged."""
    place.status = "unavailable: no leader"


@one_of(a_partition(leader_log))
def raise_epoch(story: Story, random: Random, place: Partition) -> None:
    """A part of the log is of an earlier leader's epoch."""
    index = random.randrange(len(leader_log(place)))
    for batches in place.replicas.values():
        batches[: index + 1] = [replace(batch, leader_epoch=batch.leader_epoch - 1) for batch in batches[: index + 1]]


@one_of(a_partition(leader_log))
def elect(story: Story, random: Random, place: Partition) -> None:
    """The log goes on in another leader epoch, which the conductor saw, or not; faults may be about."""
    index = random.randrange(len(leader_log(place)))
    start, epoch = leader_log(place)[index].base_offset, max(b.leader_epoch for b in leader_log(place)) + 1
    for broker, batches in place.replicas.items():
        place.replicas[broker] = [replace(b, leader_epoch=epoch) if b.base_offset >= start else b for b in batches]
    lag_ms = random.choice([100, 1000, 30_000])
    story.settings = replace(
        story.settings, acks=random.choice(["0", "1"]), idempotence=False, replica_lag_time_max_ms=lag_ms,
        session_timeout_ms=lag_ms, unclean_leader_election=random.random() < 0.5,
    )  # fmt: skip
    at_ns = random.choice([1, 13, 19, 500]) * SECOND // 10
    looks = [(0, None, epoch - 1), (at_ns, at_ns - SECOND // 5, epoch)]
    for time_ns, before_ns, seen in looks[random.choice([0, 0, 0, 1]) : random.choice([1, 2, 2, 2])]:
        story.leaders.append(
            {
                "time_ns": time_ns, "before_ns": before_ns, "partition": number_of(story, place), "leader_epoch": seen,
                "leader": random.choice([1, 2]), **random.choice([{}, {"topic": TOPIC}]),
            }
        )  # fmt: skip
    break_link(story, random)


@one_of(a_partition())
def break_link(story: Story, random: Random, place: Partition) -> None:
    """Legal: the harness breaks something, of producers or of others, and heals it, or not."""
    start_ns = random.choice([1, 10, 15, 90]) * SECOND // 10
    fault = random.choice(["reset", "kill-leader", "cut-link", "pause-leader"])
    target = random.choice(["producers-b1, requests", "b1-b2, responses", "broker 2", "brokers 1, 2, one by one"])
    number = 1 + max((entry["number"] for entry in story.faults), default=-1)
    span = {"start_ns": start_ns, "end_ns": start_ns + SECOND}
    for phase in random.choice([["inject"], ["inject", "heal"], ["inject", "heal"]]):
        story.faults.append({"number": number, "fault": fault, "target": target, "phase": phase, **span})


@one_of(lambda story: [story])
def stop_otherwise(story: Story, random: Random, target: Story) -> None:
    """A broker was killed, or left half a batch after a clean stop, or its end was noted."""
    broker = random.choice([1, 2])
    match random.randrange(3):
        case 0:
            story.killed ^= {broker}
        case 1:
            story.stopped.add(broker)
            place = random.choice([each for _, each in sorted(story.partitions.items())])
            place.tails[broker] = Batch(place.high_watermark, ((77, 0),)).encode()[: random.randrange(1, 70)]
        case _:
            story.exits[broker] = random.choice([code for code in (0, -9, 1) if code != story.exits.get(broker)])
