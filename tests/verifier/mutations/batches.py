"""Mutations of the batches of a log and their values: lost, repeated, moved, damaged, or of nobody's making."""

from __future__ import annotations

import struct
from dataclasses import replace
from random import Random

import crc32c

from tests.support.stories import (
    RUN_ID,
    SENTINEL_STREAM,
    Partition,
    Story,
    row,
)
from tests.verifier.mutations.model import (
    a_partition,
    all_or_one,
    has_two_values,
    has_values,
    indexes_where,
    is_plain,
    leader_log,
    number_of,
    one_of,
    replicas_with,
    unlike_next,
    written_replicas,
)
from verifier.evidence.sequenced_value import encode


@one_of(a_partition(leader_log))
def drop_batch(story: Story, random: Random, place: Partition) -> None:
    """A batch vanishes and leaves a hole."""
    index = random.randrange(len(leader_log(place)))
    for batches in all_or_one(replicas_with(place, index), random):
        del batches[index]


@one_of(a_partition(lambda place: len(leader_log(place)) > 1))
def lose_and_close_up(story: Story, random: Random, place: Partition) -> None:
    """A batch vanishes and the next ones take its offsets: on disk, and in what clients are told from then on."""
    victim = random.choice(leader_log(place)[:-1])
    partition = number_of(story, place)

    def shift(offset: int) -> int:
        return min(max(offset - victim.base_offset, 0), victim.next_offset - victim.base_offset)

    for broker, batches in place.replicas.items():
        place.replicas[broker] = [
            replace(batch, base_offset=batch.base_offset - shift(batch.base_offset))
            for batch in batches
            if batch.base_offset != victim.base_offset
        ]
    place.high_watermark -= shift(place.high_watermark)
    place.sentinel_offset -= shift(place.sentinel_offset)
    place.log_end_offsets = {broker: end - shift(end) for broker, end in place.log_end_offsets.items()}
    for process, rows in story.rows.items():
        story.rows[process] = [
            each._replace(
                first_offset=each.first_offset - shift(each.first_offset),
                last_offset=each.last_offset - shift(each.first_offset),
                high_watermark=each.high_watermark - shift(each.high_watermark),
            )
            if each.partition == partition
            else each
            for each in rows
            if each.partition != partition
            or not (each.f == "poll" and (each.stream, each.first_sequence) in victim.values)
        ]


@one_of(a_partition(lambda place: any(map(has_values, leader_log(place)[:-1]))))
def repeat_batch(story: Story, random: Random, place: Partition) -> None:
    """A batch stands a second time at the end of the log, under the same or another identity; readers see it or not."""
    batch = random.choice([batch for batch in leader_log(place)[:-1] if batch.values])
    partition = number_of(story, place)
    at = place.high_watermark
    identity = random.choice([
        {}, {"producer_epoch": batch.producer_epoch + 1}, {"producer_id": -1}, {"producer_id": batch.producer_id + 500},
    ])  # fmt: skip
    copy = replace(batch, base_offset=at, **identity)
    for batches in place.replicas.values():
        batches.append(copy)
    size = copy.next_offset - copy.base_offset
    place.high_watermark += size
    place.log_end_offsets = {broker: end + size for broker, end in place.log_end_offsets.items()}
    if random.random() < 0.7:
        for step, (stream, sequence) in enumerate(copy.values):
            story.rows["final-1"].append(
                row("poll", "ok", partition, stream, sequence, sequence, at + step, phase="final")
            )
    if random.random() < 0.3:
        stream, sequence = copy.values[0]
        story.rows["producer-1"].append(
            row("send", "info", partition, stream, 900, 900, -1)._replace(error="_MSG_TIMED_OUT: Local")
        )


@one_of(a_partition(lambda place: indexes_where(place, has_two_values)))
def swap_values(story: Story, random: Random, place: Partition) -> None:
    """Two values of a batch change places, on all replicas or one."""
    index = random.choice(indexes_where(place, has_two_values))
    for batches in all_or_one(replicas_with(place, index, has_two_values), random):
        values = list(batches[index].values)
        values[0], values[-1] = values[-1], values[0]
        batches[index] = replace(batches[index], values=tuple(values))


@one_of(a_partition(lambda place: len(leader_log(place)) > 3))
def swap_batches_in_log(story: Story, random: Random, place: Partition) -> None:
    """Two batches change places and take each other's offsets (a retried batch came late)."""
    log = leader_log(place)
    index = random.randrange(len(log) - 3)
    first, second = log[index], log[index + 1]
    pair = [replace(second, base_offset=first.base_offset)]
    pair.append(replace(first, base_offset=pair[0].next_offset))
    for batches in replicas_with(place, index + 1):
        batches[index : index + 2] = pair


@one_of(a_partition(lambda place: any(map(unlike_next, place.replicas.values()))))
def swap_batches_in_file(story: Story, random: Random, place: Partition) -> None:
    """The file holds two batches in the wrong order; each keeps its offsets."""
    for batches in all_or_one([batches for batches in place.replicas.values() if unlike_next(batches)], random):
        index = random.choice(unlike_next(batches))
        batches[index], batches[index + 1] = batches[index + 1], batches[index]


@one_of(a_partition(written_replicas))
def flip_byte(story: Story, random: Random, place: Partition) -> None:
    """One byte of a batch changes on one replica: somewhere, in the CRC, in the records or in a value's padding."""
    batches = random.choice(written_replicas(place))
    index = random.randrange(len(batches))
    where, flip = random.random(), random.randrange(1, 256)
    aim = random.choice(["crc", "records", "tail", "anywhere"])

    def spoil(data: bytes) -> bytes:
        low, high = {"crc": (17, 21), "records": (61, len(data)), "tail": (len(data) - 8, len(data) - 1)}.get(
            aim, (0, len(data))
        )
        position = low + int(where * (high - low))
        return data[:position] + bytes([data[position] ^ flip]) + data[position + 1 :]

    batches[index] = replace(batches[index], spoil=spoil)


@one_of(a_partition(lambda place: indexes_where(place, is_plain)))
def damage_value(story: Story, random: Random, place: Partition) -> None:
    """A byte of a value changes and the batch's CRC is made to fit."""
    index = random.choice(indexes_where(place, is_plain))
    # the last bytes of a batch are a value's padding and the count of its headers
    back = random.choice([2, 10, 30, 60])

    def spoil(data: bytes) -> bytes:
        position = len(data) - back
        changed = data[:position] + bytes([data[position] ^ 0x55]) + data[position + 1 :]
        return changed[:17] + struct.pack(">I", crc32c.crc32c(changed[21:])) + changed[21:]

    for batches in all_or_one(replicas_with(place, index, is_plain), random):
        batches[index] = replace(batches[index], spoil=spoil)


@one_of(a_partition(written_replicas))
def cut_file(story: Story, random: Random, place: Partition) -> None:
    """A file ends early: at a batch's border, within one, or after zeros."""
    broker = random.choice([broker for broker, batches in sorted(place.replicas.items()) if batches])
    kept = random.randrange(len(place.replicas[broker]))
    next_batch = place.replicas[broker][kept].encode()
    place.replicas[broker] = place.replicas[broker][:kept]
    place.tails[broker] = random.choice([b"", next_batch[: random.randrange(1, len(next_batch))], bytes(40)])


@one_of(a_partition(written_replicas))
def diverge(story: Story, random: Random, place: Partition) -> None:
    """One replica holds another batch at the same offsets: other content, another epoch or another producer."""
    batches = random.choice(written_replicas(place))
    index = random.randrange(len(batches))
    batch = batches[index]
    others = [replace(batch, leader_epoch=batch.leader_epoch + 8), replace(batch, producer_id=4711)]
    others.append(replace(batch, values=tuple((5, sequence) for _, sequence in batch.values)))
    batches[index] = random.choice([other for other in others if other != batch])


@one_of(a_partition(lambda place: indexes_where(place, has_values)))
def write_foreign(story: Story, random: Random, place: Partition) -> None:
    """Something that is not of this run's load stands in the log."""
    index = random.choice(indexes_where(place, has_values))
    for batches in replicas_with(place, index, has_values):
        count = len(batches[index].values)
        other_run = encode(RUN_ID + 1, 1, 1, 1)
        raw = random.choice([b"hello", other_run, encode(RUN_ID, 1, 1, 1)[:50] + b"x"])
        batches[index] = replace(batches[index], values=(), raw_values=(raw,) * count)


@one_of(a_partition(lambda place: indexes_where(place, has_values)))
def write_unreserved(story: Story, random: Random, place: Partition) -> None:
    """A value of a stream that nobody writes, or one that was never reserved."""
    index = random.choice(indexes_where(place, has_values))
    there = leader_log(place)[index].values[0]
    stranger = random.choice([value for value in ((99, 3), (1, 5000), (SENTINEL_STREAM, 77)) if value != there])
    for batches in replicas_with(place, index, has_values):
        batches[index] = replace(batches[index], values=(stranger, *batches[index].values[1:]))
