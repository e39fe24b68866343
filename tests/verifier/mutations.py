"""Ways to break a story: what a wrong cluster, a wrong client or a damaged disk would leave. Drawn by hypothesis.

A mutation takes the story and a random generator and changes it in place. Some are legal (a torn tail above the high
watermark, an acknowledgement without an offset) and must be found harmless.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from random import Random

import crc32c
from hypothesis import strategies as st

from tests.support.stories import RUN_ID, SENTINEL_STREAM, Batch, Story, clean, row
from verifier.evidence.values import encode

Mutation = Callable[[Story, Random], None]


def _partition(story: Story, random: Random) -> int:
    return random.choice(sorted(story.partitions))


def _some_replicas(story: Story, partition: int, random: Random) -> list[list[Batch]]:
    """All replicas, or one of them."""
    replicas = list(story.partitions[partition].replicas.values())
    return replicas if random.random() < 0.5 else [random.choice(replicas)]


def drop_batch(story: Story, random: Random) -> None:
    """A batch vanishes and leaves a hole."""
    partition = _partition(story, random)
    index = random.randrange(len(story.leader_log(partition)))
    for batches in _some_replicas(story, partition, random):
        if index < len(batches):
            del batches[index]


def lose_and_close_up(story: Story, random: Random) -> None:
    """A batch vanishes and the next ones take its offsets: on disk, and in what clients are told from then on."""
    partition = _partition(story, random)
    log = story.leader_log(partition)
    victim = random.choice(log[:-1])
    size = victim.next_offset - victim.base_offset

    def moved(offset: int) -> int:
        return offset - size if offset > victim.base_offset else offset

    for broker, batches in story.partitions[partition].replicas.items():
        story.partitions[partition].replicas[broker] = [
            replace(batch, base_offset=moved(batch.base_offset)) for batch in batches if batch is not victim
        ]
    place = story.partitions[partition]
    place.high_watermark -= size
    place.sentinel_offset -= size
    place.log_end_offsets = {broker: end - size for broker, end in place.log_end_offsets.items()}
    for process, rows in story.rows.items():
        story.rows[process] = [
            each._replace(first_offset=each.first_offset - size, last_offset=each.last_offset - size)
            if each.partition == partition and each.first_offset > victim.base_offset
            else each
            for each in rows
            if each.partition != partition
            or not (each.f == "poll" and (each.stream, each.first_sequence) in victim.values)
        ]


def repeat_batch(story: Story, random: Random) -> None:
    """A batch stands a second time at the end of the log, under the same or another identity; readers see it or not."""
    partition = _partition(story, random)
    place = story.partitions[partition]
    batch = random.choice(story.leader_log(partition)[:-1])
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


def swap_values(story: Story, random: Random) -> None:
    """Two values of a batch change places, on all replicas or one."""
    partition = _partition(story, random)
    index = random.randrange(len(story.leader_log(partition)))
    for batches in _some_replicas(story, partition, random):
        if index < len(batches) and len(batches[index].values) > 1:
            values = list(batches[index].values)
            values[0], values[-1] = values[-1], values[0]
            batches[index] = replace(batches[index], values=tuple(values))


def swap_batches_in_log(story: Story, random: Random) -> None:
    """Two batches change places and take each other's offsets (a retried batch came late)."""
    partition = _partition(story, random)
    log = story.leader_log(partition)
    if len(log) < 4:
        return
    index = random.randrange(len(log) - 3)
    first, second = log[index], log[index + 1]
    pair = [replace(second, base_offset=first.base_offset)]
    pair.append(replace(first, base_offset=pair[0].next_offset))
    for batches in story.partitions[partition].replicas.values():
        batches[index : index + 2] = pair


def swap_batches_in_file(story: Story, random: Random) -> None:
    """The file holds two batches in the wrong order; each keeps its offsets."""
    partition = _partition(story, random)
    for batches in _some_replicas(story, partition, random):
        if len(batches) > 2:
            index = random.randrange(len(batches) - 1)
            batches[index], batches[index + 1] = batches[index + 1], batches[index]


def flip_byte(story: Story, random: Random) -> None:
    """One byte of a batch changes on one replica: somewhere, in the CRC, in the records or in a value's padding."""
    partition = _partition(story, random)
    batches = random.choice(list(story.partitions[partition].replicas.values()))
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


def damage_value(story: Story, random: Random) -> None:
    """A byte of a value changes and the batch's CRC is made to fit."""
    partition = _partition(story, random)
    index = random.randrange(len(story.leader_log(partition)))
    # the last bytes of a batch are a value's padding and the count of its headers
    back = random.choice([2, 10, 30, 60])

    def spoil(data: bytes) -> bytes:
        if data[22] & 7:
            return data
        position = len(data) - back
        changed = data[:position] + bytes([data[position] ^ 0x55]) + data[position + 1 :]
        return changed[:17] + struct.pack(">I", crc32c.crc32c(changed[21:])) + changed[21:]

    for batches in _some_replicas(story, partition, random):
        if index < len(batches):
            batches[index] = replace(batches[index], spoil=spoil)


def cut_file(story: Story, random: Random) -> None:
    """A file ends early: at a batch's border, within one, or after zeros."""
    partition = _partition(story, random)
    place = story.partitions[partition]
    broker = random.choice(sorted(place.replicas))
    kept = random.randrange(len(place.replicas[broker]))
    next_batch = place.replicas[broker][kept].encode()
    place.replicas[broker] = place.replicas[broker][:kept]
    place.tails[broker] = random.choice([b"", next_batch[: random.randrange(1, len(next_batch))], bytes(40)])


def torn_tail_above(story: Story, random: Random) -> None:
    """Legal: a killed broker leaves half a batch behind everything that is committed."""
    partition = _partition(story, random)
    place = story.partitions[partition]
    tail = Batch(place.high_watermark, ((77, 0),)).encode()
    place.tails[random.choice(sorted(place.replicas))] = tail[: random.randrange(1, len(tail))]


def zombie_tail(story: Story, random: Random) -> None:
    """Legal: a replica holds batches above the high watermark that nobody else has."""
    partition = _partition(story, random)
    place = story.partitions[partition]
    broker = random.choice(sorted(place.replicas))
    place.replicas[broker].append(Batch(place.high_watermark, ((1, 999_999),), leader_epoch=0))
    if random.random() < 0.5:
        place.log_end_offsets[broker] += 1


def diverge(story: Story, random: Random) -> None:
    """One replica holds another batch at the same offsets: other content, another epoch or another producer."""
    partition = _partition(story, random)
    place = story.partitions[partition]
    batches = place.replicas[random.choice(sorted(place.replicas))]
    index = random.randrange(len(batches))
    changes = [{"leader_epoch": 9}, {"producer_id": 4711}, {"values": tuple((5, s) for _, s in batches[index].values)}]
    batches[index] = replace(batches[index], **random.choice(changes))


def lower_high_watermark(story: Story, random: Random) -> None:
    """The final high watermark lies somewhere within the log."""
    place = story.partitions[_partition(story, random)]
    place.high_watermark = random.randrange(place.high_watermark + 1)


def raise_log_start(story: Story, random: Random) -> None:
    """The log no longer starts at 0, as a journal says, or further than it says, or for a reason that is none."""
    partition = _partition(story, random)
    place = story.partitions[partition]
    place.log_start_offset = random.randrange(place.high_watermark)
    for broker in place.replicas:
        reason = random.choice([None, None, "time", "size", "asked for", "the leader's log begins later"])
        story.delete_below(partition, place.log_start_offset + random.choice([-2, 0, 0, 3]), reason, broker)
    if random.random() < 0.5:
        for broker, batches in place.replicas.items():
            place.replicas[broker] = [batch for batch in batches if batch.next_offset > place.log_start_offset]


def make_unavailable(story: Story, random: Random) -> None:
    """A partition never came back: nothing about it is judged."""
    story.partitions[_partition(story, random)].status = "unavailable: no leader"


def change_send(story: Story, random: Random) -> None:
    """What a producer was told changes: another outcome, another offset, none, or another order."""
    rows = story.rows["producer-1"]
    index = random.choice([index for index, each in enumerate(rows) if each.f == "send"])
    each = rows[index]
    step = random.choice([-3, -1, 1, 2, 500])
    low = max(each.first_offset + step, 0)
    rows[index] = random.choice([
        each._replace(type="info", first_offset=-1, last_offset=-1, error="_PURGE_QUEUE: Local"),
        each._replace(type="fail", first_offset=-1, last_offset=-1),
        each._replace(first_offset=-1, last_offset=-1),
        each._replace(first_offset=low, last_offset=low + each.last_sequence - each.first_sequence),
    ])  # fmt: skip


def acknowledge_again(story: Story, random: Random) -> None:
    """A value is acknowledged a second time, elsewhere."""
    rows = story.rows["producer-1"]
    each = random.choice([each for each in rows if each.f == "send"])
    rows.append(each._replace(first_offset=each.first_offset + 7, last_offset=each.last_offset + 7))


def change_reads(story: Story, random: Random) -> None:
    """A reader misses something, is handed it elsewhere, twice, or as bytes it cannot decode."""
    process = random.choice([name for name in story.rows if name.startswith(("reader", "final"))])
    rows = story.rows[process]
    index = random.choice([index for index, each in enumerate(rows) if each.f == "poll"])
    each = rows[index]
    move = random.choice([1, 2, 300])
    undecodable = each._replace(stream=-1, first_sequence=-1, last_sequence=-1, error="undecodable: damaged")
    elsewhere = each._replace(first_offset=each.first_offset + move, last_offset=each.last_offset + move)
    rows[index : index + 1] = random.choice([[], [elsewhere], [each, elsewhere], [undecodable], [each, each]])


def stop_reader(story: Story, random: Random) -> None:
    """A final reader ends before the sentinel."""
    process = random.choice([name for name in story.rows if name.startswith("final")])
    story.rows[process] = story.rows[process][: random.randrange(len(story.rows[process]))]


def shrink_reservation(story: Story, random: Random) -> None:
    """Fewer sequences were reserved than were sent, or in two parts."""
    rows = story.rows["producer-1"]
    index = random.choice([index for index, each in enumerate(rows) if each.f == "reserve"])
    each = rows[index]
    middle = random.randrange(each.first_sequence, each.last_sequence + 1)
    first = each._replace(last_sequence=middle)
    rest = each._replace(first_sequence=middle + random.choice([0, 1, 2]))
    rows[index : index + 1] = random.choice([[first], [rest, first], [first, rest], []])


def write_foreign(story: Story, random: Random) -> None:
    """Something that is not of this run's load stands in the log."""
    partition = _partition(story, random)
    index = random.randrange(len(story.leader_log(partition)))
    for batches in story.partitions[partition].replicas.values():
        if index < len(batches):
            count = len(batches[index].values)
            other_run = encode(RUN_ID + 1, 1, 1, 1)
            raw = random.choice([b"hello", other_run, encode(RUN_ID, 1, 1, 1)[:50] + b"x"])
            batches[index] = replace(batches[index], values=(), raw_values=(raw,) * count)


def write_unreserved(story: Story, random: Random) -> None:
    """A value of a stream that nobody writes, or one that was never reserved."""
    partition = _partition(story, random)
    index = random.randrange(len(story.leader_log(partition)))
    stranger = random.choice([(99, 3), (1, 5000), (SENTINEL_STREAM, 77)])
    for batches in story.partitions[partition].replicas.values():
        if index < len(batches):
            values = (stranger, *batches[index].values[1:])
            batches[index] = replace(batches[index], values=values)


MUTATIONS: tuple[Mutation, ...] = (
    drop_batch, lose_and_close_up, repeat_batch, swap_values, swap_batches_in_log, swap_batches_in_file, flip_byte,
    damage_value, cut_file, torn_tail_above, zombie_tail, diverge, lower_high_watermark, raise_log_start,
    make_unavailable, change_send, acknowledge_again, change_reads, stop_reader, shrink_reservation, write_foreign,
    write_unreserved,
)  # fmt: skip


@st.composite
def broken_stories(draw: st.DrawFn) -> tuple[str, Story]:
    """A small story with up to three mutations, and what was done to it."""
    story = clean(
        partitions=draw(st.integers(1, 2)),
        streams=draw(st.integers(2, 3)),
        batches=draw(st.integers(2, 4)),
        size=draw(st.integers(1, 3)),
        brokers=draw(st.integers(2, 3)),
        final_readers=draw(st.integers(1, 2)),
        codec=draw(st.sampled_from(["none", "none", "gzip", "snappy", "lz4", "zstd"])),
    )
    story.split_at = draw(st.integers(0, 3))
    chosen = draw(st.lists(st.sampled_from(MUTATIONS), max_size=3))
    seed = draw(st.integers(0, 1 << 16))
    random = Random(seed)
    for mutation in chosen:
        mutation(story, random)
    return f"{' + '.join(mutation.__name__ for mutation in chosen) or 'clean'} (seed {seed})", story
