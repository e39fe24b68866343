"""Ways to break a story: what a wrong cluster, a wrong client or a damaged disk would leave. Drawn by hypothesis.

A mutation takes the story and a random generator and changes it in place. Some are legal (a torn tail above the high
watermark, an acknowledgement without an offset) and must be found harmless. Where a story has nothing that a mutation
could change (no file that is not empty, no batch of two values), the mutation is impossible, and is not drawn for it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import crc32c
from hypothesis import strategies as st

from tests.support.stories import (
    MADE_MS,
    PRODUCER_IDS_BELOW,
    RUN_ID,
    SECOND,
    SENTINEL_STREAM,
    TOPIC,
    Batch,
    Partition,
    Story,
    clean,
    row,
)
from verifier.evidence.history import HistoryRow
from verifier.evidence.values import encode


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


def _number(story: Story, place: Partition) -> int:
    return next(number for number, each in story.partitions.items() if each is place)


def _leader_log(place: Partition) -> list[Batch]:
    return place.replicas[place.leader]


def _written(place: Partition) -> list[list[Batch]]:
    """The replicas that hold anything."""
    return [batches for batches in place.replicas.values() if batches]


def _where(place: Partition, fits: Callable[[Batch], object]) -> list[int]:
    """The batches of the leader that fit, by index."""
    return [index for index, batch in enumerate(_leader_log(place)) if fits(batch)]


def _some(replicas: list[list[Batch]], random: Random) -> list[list[Batch]]:
    """All of these replicas, or one of them."""
    return replicas if random.random() < 0.5 else [random.choice(replicas)]


def _with(place: Partition, index: int, fits: Callable[[Batch], object] = lambda batch: True) -> list[list[Batch]]:
    """The replicas that hold a batch there that fits."""
    return [batches for batches in place.replicas.values() if index < len(batches) and fits(batches[index])]


def _unlike_next(batches: list[Batch]) -> list[int]:
    """The batches of a replica that are not the same as the one behind them, by index."""
    return [index for index, (batch, after) in enumerate(pairwise(batches)) if batch != after]


def _untorn(place: Partition) -> list[int]:
    """The brokers whose file ends with a whole batch."""
    return [broker for broker in sorted(place.replicas) if not place.tails.get(broker)]


def _has_values(batch: Batch) -> bool:
    return bool(batch.values)


def _has_two_values(batch: Batch) -> bool:
    return len(batch.values) > 1


def _is_plain(batch: Batch) -> bool:
    return bool(batch.values) and batch.codec == "none"


@one_of(a_partition(_leader_log))
def drop_batch(story: Story, random: Random, place: Partition) -> None:
    """A batch vanishes and leaves a hole."""
    index = random.randrange(len(_leader_log(place)))
    for batches in _some(_with(place, index), random):
        del batches[index]


@one_of(a_partition(lambda place: len(_leader_log(place)) > 1))
def lose_and_close_up(story: Story, random: Random, place: Partition) -> None:
    """A batch vanishes and the next ones take its offsets: on disk, and in what clients are told from then on."""
    victim = random.choice(_leader_log(place)[:-1])
    partition = _number(story, place)

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
            )
            if each.partition == partition
            else each
            for each in rows
            if each.partition != partition
            or not (each.f == "poll" and (each.stream, each.first_sequence) in victim.values)
        ]


@one_of(a_partition(lambda place: any(map(_has_values, _leader_log(place)[:-1]))))
def repeat_batch(story: Story, random: Random, place: Partition) -> None:
    """A batch stands a second time at the end of the log, under the same or another identity; readers see it or not."""
    batch = random.choice([batch for batch in _leader_log(place)[:-1] if batch.values])
    partition = _number(story, place)
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


@one_of(a_partition(lambda place: _where(place, _has_two_values)))
def swap_values(story: Story, random: Random, place: Partition) -> None:
    """Two values of a batch change places, on all replicas or one."""
    index = random.choice(_where(place, _has_two_values))
    for batches in _some(_with(place, index, _has_two_values), random):
        values = list(batches[index].values)
        values[0], values[-1] = values[-1], values[0]
        batches[index] = replace(batches[index], values=tuple(values))


@one_of(a_partition(lambda place: len(_leader_log(place)) > 3))
def swap_batches_in_log(story: Story, random: Random, place: Partition) -> None:
    """Two batches change places and take each other's offsets (a retried batch came late)."""
    log = _leader_log(place)
    index = random.randrange(len(log) - 3)
    first, second = log[index], log[index + 1]
    pair = [replace(second, base_offset=first.base_offset)]
    pair.append(replace(first, base_offset=pair[0].next_offset))
    for batches in _with(place, index + 1):
        batches[index : index + 2] = pair


@one_of(a_partition(lambda place: any(map(_unlike_next, place.replicas.values()))))
def swap_batches_in_file(story: Story, random: Random, place: Partition) -> None:
    """The file holds two batches in the wrong order; each keeps its offsets."""
    for batches in _some([batches for batches in place.replicas.values() if _unlike_next(batches)], random):
        index = random.choice(_unlike_next(batches))
        batches[index], batches[index + 1] = batches[index + 1], batches[index]


@one_of(a_partition(_written))
def flip_byte(story: Story, random: Random, place: Partition) -> None:
    """One byte of a batch changes on one replica: somewhere, in the CRC, in the records or in a value's padding."""
    batches = random.choice(_written(place))
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


@one_of(a_partition(lambda place: _where(place, _is_plain)))
def damage_value(story: Story, random: Random, place: Partition) -> None:
    """A byte of a value changes and the batch's CRC is made to fit."""
    index = random.choice(_where(place, _is_plain))
    # the last bytes of a batch are a value's padding and the count of its headers
    back = random.choice([2, 10, 30, 60])

    def spoil(data: bytes) -> bytes:
        position = len(data) - back
        changed = data[:position] + bytes([data[position] ^ 0x55]) + data[position + 1 :]
        return changed[:17] + struct.pack(">I", crc32c.crc32c(changed[21:])) + changed[21:]

    for batches in _some(_with(place, index, _is_plain), random):
        batches[index] = replace(batches[index], spoil=spoil)


@one_of(a_partition(_written))
def cut_file(story: Story, random: Random, place: Partition) -> None:
    """A file ends early: at a batch's border, within one, or after zeros."""
    broker = random.choice([broker for broker, batches in sorted(place.replicas.items()) if batches])
    kept = random.randrange(len(place.replicas[broker]))
    next_batch = place.replicas[broker][kept].encode()
    place.replicas[broker] = place.replicas[broker][:kept]
    place.tails[broker] = random.choice([b"", next_batch[: random.randrange(1, len(next_batch))], bytes(40)])


@one_of(a_partition(_untorn))
def torn_tail_above(story: Story, random: Random, place: Partition) -> None:
    """Legal: a killed broker leaves half a batch behind everything that is committed."""
    tail = Batch(place.high_watermark, ((77, 0),)).encode()
    place.tails[random.choice(_untorn(place))] = tail[: random.randrange(1, len(tail))]


@one_of(a_partition())
def zombie_tail(story: Story, random: Random, place: Partition) -> None:
    """Legal: a replica holds batches above the high watermark that nobody else has."""
    broker = random.choice(sorted(place.replicas))
    place.replicas[broker].append(Batch(place.high_watermark, ((1, 999_999),)))
    if random.random() < 0.5:
        place.log_end_offsets[broker] += 1


@one_of(a_partition(_written))
def diverge(story: Story, random: Random, place: Partition) -> None:
    """One replica holds another batch at the same offsets: other content, another epoch or another producer."""
    batches = random.choice(_written(place))
    index = random.randrange(len(batches))
    batch = batches[index]
    others = [replace(batch, leader_epoch=batch.leader_epoch + 8), replace(batch, producer_id=4711)]
    others.append(replace(batch, values=tuple((5, sequence) for _, sequence in batch.values)))
    batches[index] = random.choice([other for other in others if other != batch])


@one_of(a_partition(lambda place: place.high_watermark > 0))
def lower_high_watermark(story: Story, random: Random, place: Partition) -> None:
    """The final high watermark lies somewhere within the log."""
    place.high_watermark = random.randrange(place.high_watermark)


@one_of(a_partition(lambda place: place.high_watermark > 1))
def raise_log_start(story: Story, random: Random, place: Partition) -> None:
    """The log no longer starts at 0, as was asked for, or further than that, or by retention, or for no reason."""
    partition = _number(story, place)
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


@one_of(a_row("producer", lambda each: each.f == "send" and each.type == "ok"))
def change_send(story: Story, random: Random, target: tuple[list[HistoryRow], int]) -> None:
    """What a producer was told changes: another outcome, another offset, none, or another order."""
    rows, index = target
    each = rows[index]
    low = each.first_offset + random.choice([step for step in (-3, -1, 1, 2, 500) if each.first_offset + step >= 0])
    changed = [
        each._replace(type="info", first_offset=-1, last_offset=-1, error="_PURGE_QUEUE: Local"),
        each._replace(type="fail", first_offset=-1, last_offset=-1),
        each._replace(first_offset=-1, last_offset=-1),
        each._replace(first_offset=low, last_offset=low + each.last_sequence - each.first_sequence),
    ]
    rows[index] = random.choice([other for other in changed if other != each])


@one_of(a_row("producer", lambda each: each.f == "send" and each.type == "ok" and each.first_offset >= 0))
def acknowledge_again(story: Story, random: Random, target: tuple[list[HistoryRow], int]) -> None:
    """A value is acknowledged a second time, elsewhere."""
    rows, index = target
    each = rows[index]
    rows.append(each._replace(first_offset=each.first_offset + 7, last_offset=each.last_offset + 7))


@one_of(a_history("reader", "final"))
def change_reads(story: Story, random: Random, rows: list[HistoryRow]) -> None:
    """A reader misses something, is handed it elsewhere, twice, or as bytes it cannot decode."""
    index = random.choice([index for index, each in enumerate(rows) if each.f == "poll"])
    each = rows[index]
    move = random.choice([1, 2, 300])
    undecodable = each._replace(stream=-1, first_sequence=-1, last_sequence=-1, error="undecodable: damaged")
    elsewhere = each._replace(first_offset=each.first_offset + move, last_offset=each.last_offset + move)
    changed = [[], [elsewhere], [each, elsewhere], [undecodable], [each, each]]
    rows[index : index + 1] = random.choice([others for others in changed if others != [each]])


@one_of(a_history("final"))
def stop_reader(story: Story, random: Random, rows: list[HistoryRow]) -> None:
    """A final reader ends before the sentinel."""
    del rows[random.randrange(len(rows)) :]


@one_of(a_row("producer", lambda each: each.f == "reserve" and each.first_sequence < each.last_sequence))
def shrink_reservation(story: Story, random: Random, target: tuple[list[HistoryRow], int]) -> None:
    """Fewer sequences were reserved than were sent, or in two parts."""
    rows, index = target
    each = rows[index]
    middle = random.randrange(each.first_sequence, each.last_sequence)
    first = each._replace(last_sequence=middle)
    rest = each._replace(first_sequence=min(middle + random.choice([0, 1, 2]), each.last_sequence))
    rows[index : index + 1] = random.choice([[first], [rest, first], [first, rest], []])


@one_of(a_partition(lambda place: _where(place, _has_values)))
def write_foreign(story: Story, random: Random, place: Partition) -> None:
    """Something that is not of this run's load stands in the log."""
    index = random.choice(_where(place, _has_values))
    for batches in _with(place, index, _has_values):
        count = len(batches[index].values)
        other_run = encode(RUN_ID + 1, 1, 1, 1)
        raw = random.choice([b"hello", other_run, encode(RUN_ID, 1, 1, 1)[:50] + b"x"])
        batches[index] = replace(batches[index], values=(), raw_values=(raw,) * count)


@one_of(a_partition(lambda place: _where(place, _has_values)))
def write_unreserved(story: Story, random: Random, place: Partition) -> None:
    """A value of a stream that nobody writes, or one that was never reserved."""
    index = random.choice(_where(place, _has_values))
    there = _leader_log(place)[index].values[0]
    stranger = random.choice([value for value in ((99, 3), (1, 5000), (SENTINEL_STREAM, 77)) if value != there])
    for batches in _with(place, index, _has_values):
        batches[index] = replace(batches[index], values=(stranger, *batches[index].values[1:]))


@one_of(a_row("", lambda each: each.f in ("send", "sentinel", "poll")))
def change_times(story: Story, random: Random, target: tuple[list[HistoryRow], int]) -> None:
    """What was sent or read happened at another time."""
    rows, index = target
    each = rows[index]
    moved = random.choice([-700, -150, -10, 1, 150, 700, 5000]) * 1_000_000
    changed = [each._replace(invoke_ns=each.invoke_ns + moved), each._replace(complete_ns=each.complete_ns + moved)]
    changed.append(each._replace(invoke_ns=each.invoke_ns + moved, complete_ns=each.complete_ns + moved))
    rows[index] = random.choice(changed)


@one_of(a_history("reader", "final"))
def change_session(story: Story, random: Random, rows: list[HistoryRow]) -> None:
    """From somewhere on a reader has another session, was moved, or had its polls brought together or taken apart."""
    index = random.choice([index for index, each in enumerate(rows) if each.f == "poll"])
    each = rows[index]
    offset = each.first_offset + random.choice([-2, 0, 0, 1])
    kind = random.choice(["assign", "seek", "op", "ops"])
    if kind == "op":
        rows[index:] = [other._replace(op=each.op + 1000) for other in rows[index:]]
    elif kind == "ops":
        rows[index:] = [other._replace(op=5000 + number) for number, other in enumerate(rows[index:])]
    else:
        session = each.session + (kind == "assign")
        rows[index:] = [other._replace(session=session) for other in rows[index:]]
        rows.insert(index, each._replace(f=kind, first_offset=offset, last_offset=offset, stream=-1))


@one_of(a_history("reader"))
def tell_watermarks(story: Story, random: Random, rows: list[HistoryRow]) -> None:
    """A reader is told high watermarks, and some of them go back."""
    for index, each in enumerate(rows):
        if each.f == "poll":
            back = random.choice([0, 0, 0, 2, 5])
            rows[index] = each._replace(high_watermark=max(each.last_offset + 1 + random.randrange(4) - back, -1))
    index = random.choice([index for index, each in enumerate(rows) if each.f == "poll"])
    told = rows[index]._replace(f="idle", count=3, stream=-1, first_offset=-1, last_offset=-1)
    rows.insert(index + 1, told._replace(high_watermark=told.high_watermark - 1))


@one_of(a_partition(_leader_log))
def raise_epoch(story: Story, random: Random, place: Partition) -> None:
    """A part of the log is of an earlier leader's epoch."""
    index = random.randrange(len(_leader_log(place)))
    for batches in place.replicas.values():
        batches[: index + 1] = [replace(batch, leader_epoch=batch.leader_epoch - 1) for batch in batches[: index + 1]]


@one_of(a_partition(_leader_log))
def elect(story: Story, random: Random, place: Partition) -> None:
    """The log goes on in another leader epoch, which the conductor saw, or not; faults may be about."""
    index = random.randrange(len(_leader_log(place)))
    start, epoch = _leader_log(place)[index].base_offset, max(b.leader_epoch for b in _leader_log(place)) + 1
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
                "time_ns": time_ns, "before_ns": before_ns, "partition": _number(story, place), "leader_epoch": seen,
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


@one_of(a_row("producer", lambda each: each.f == "send"))
def send_again(story: Story, random: Random, target: tuple[list[HistoryRow], int]) -> None:
    """Legal: the client sends something again, or loses a connection."""
    rows, index = target
    each = rows[index]
    first = max(0, each.first_sequence + random.choice([-1, 0, 0, 1, 2]))
    at_ns = each.complete_ns + random.choice([-3, 0, 0, 3, 40]) * SECOND
    again = each._replace(
        f=random.choice(["retry", "retry", "disconnect"]), type="info", first_offset=-1, last_offset=-1,
        first_sequence=first, last_sequence=first + random.choice([0, 1, 2, 5]), invoke_ns=at_ns, complete_ns=at_ns,
        count=random.choice([0, 1, 3]), error="told",
    )  # fmt: skip
    rows.append(again)
    if random.random() < 0.5:
        story.settings = replace(story.settings, idempotence=False)


def _told_offsets(story: Story) -> list[list[HistoryRow]]:
    return [rows for rows in story.rows.values() if any(each.f == "send" and each.first_offset >= 0 for each in rows)]


@one_of(_told_offsets)
def tell_no_offsets(story: Story, random: Random, rows: list[HistoryRow]) -> None:
    """acks=0: no acknowledgement has an offset."""
    rows[:] = [each._replace(first_offset=-1, last_offset=-1) if each.f == "send" else each for each in rows]
    story.settings = replace(story.settings, acks="0", idempotence=False)


def _change_headers(random: Random, place: Partition, fits: Callable[[Batch], object], fields: Any) -> None:
    """A batch that fits has other header fields, on all replicas or one; ``fields`` gives them for a batch."""
    index = random.choice(_where(place, fits))
    chosen = _some(_with(place, index), random)
    changed = fields(chosen[0][index])
    for batches in chosen:
        batches[index] = replace(batches[index], **changed)


@one_of(a_partition(_leader_log))
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
    index = random.randrange(len(_leader_log(place)))
    chosen = _some(_with(place, index), random)
    epoch = random.choice([each for each in epochs if each != chosen[0][index].leader_epoch])
    for batches in chosen:
        batches[index:] = [replace(batch, leader_epoch=epoch) for batch in batches[index:]]


@one_of(a_partition(lambda place: _where(place, lambda batch: batch.base_sequence >= 0)))
def change_sequence(story: Story, random: Random, place: Partition) -> None:
    """A batch has another base sequence, or another producer epoch: ahead, behind, that of another, or a new one."""
    moves = [-3, -1, 1, 3, 2**30, 2**31 - 1]

    def fields(batch: Batch) -> dict[str, Any]:
        sequence = (batch.base_sequence + random.choice(moves)) % 2**31
        return random.choice([{"base_sequence": sequence}, {"producer_epoch": batch.producer_epoch + 1}])

    _change_headers(random, place, lambda batch: batch.base_sequence >= 0, fields)


@one_of(a_partition(_leader_log))
def change_producer(story: Story, random: Random, place: Partition) -> None:
    """A batch is of a producer that another stream has, that nobody was given, or of none."""

    def fields(batch: Batch) -> dict[str, Any]:
        others = [each for each in (-2, -1, 1001, 1002, PRODUCER_IDS_BELOW) if each != batch.producer_id]
        return {"producer_id": random.choice(others)}

    _change_headers(random, place, lambda batch: True, fields)


@one_of(a_partition(_leader_log))
def change_time(story: Story, random: Random, place: Partition) -> None:
    """A batch is older or newer, within the run or not."""
    moves = [-1, 5, 10**6, -(10**6), 10**12, -MADE_MS, -MADE_MS - 1]
    _change_headers(
        random,
        place,
        lambda batch: True,
        lambda batch: {"timestamp_ms": batch.timestamp_ms + random.choice(moves)},
    )


@one_of(a_partition(lambda place: len(place.replicas) > 1))
def two_tails(story: Story, random: Random, place: Partition) -> None:
    """Two replicas hold different batches above the high watermark, of one epoch or of two."""
    epoch = random.choice([1, 2])
    for broker, sequence in zip(random.sample(sorted(place.replicas), 2), (70, 71), strict=True):
        place.replicas[broker].append(Batch(place.high_watermark, ((1, sequence),), leader_epoch=epoch))
        epoch = random.choice([epoch, 2])


@one_of(lambda story: [story])
def stop_otherwise(story: Story, random: Random, target: Story) -> None:
    """A broker was killed, or left half a batch after a stop in good order, or its end was noted."""
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


@one_of(lambda story: [story])
def index_otherwise(story: Story, random: Random, target: Story) -> None:
    """Legal: indexes have entries for fewer or more batches, and there are more or fewer segments."""
    story.index_interval = random.choice([each for each in (0, 100, 300, 700) if each != story.index_interval])
    story.split_at = random.choice([0, 1, 2, 3])


@one_of(lambda story: [(broker, index) for index, place in story.partitions.items() for broker in place.replicas])
def damage_side_file(story: Story, random: Random, target: tuple[int, int]) -> None:
    """A file beside a log is gone, cut, longer, or other than it was."""
    broker, index = target
    home = f"{TOPIC}-{index}"
    log = story.partitions[index].replicas[broker]
    end = log[-1].next_offset if log else 0
    first = log[0].base_offset if log else 0
    name = random.choice([
        f"{home}/{first:020d}.index", f"{home}/{first:020d}.timeindex", f"{home}/leader-epoch-checkpoint",
        f"{home}/{end:020d}.snapshot", f"{home}/{end + 1:020d}.snapshot", "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint", "log-start-offset-checkpoint", ".kafka_cleanshutdown",
    ])  # fmt: skip
    how, where, flip = random.randrange(6), random.random(), random.randrange(1, 256)
    line = random.randrange(end + 3)

    def change(data: bytes) -> bytes | None:
        at = int(where * len(data))
        if how == 0:
            return None
        if how == 1:
            return data[:at]
        if how == 2:
            return data + bytes([flip])
        if how == 3 and name.endswith("checkpoint"):
            fields = f"{TOPIC} {index}" if "offset" in name else "1"
            return f"0\n1\n{fields} {line}\n".encode()
        return data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :] if data else b"\1"

    story.side_files[broker, name] = change


MUTATIONS: tuple[Mutation, ...] = (
    drop_batch, lose_and_close_up, repeat_batch, swap_values, swap_batches_in_log, swap_batches_in_file, flip_byte,
    damage_value, cut_file, torn_tail_above, zombie_tail, diverge, lower_high_watermark, raise_log_start,
    make_unavailable, change_send, acknowledge_again, change_reads, stop_reader, shrink_reservation, write_foreign,
    write_unreserved, change_times, change_session, tell_watermarks, raise_epoch, elect, break_link, send_again,
    tell_no_offsets, change_epoch, change_sequence, change_producer, change_time, two_tails, stop_otherwise,
    index_otherwise, damage_side_file,
)  # fmt: skip


@st.composite
def broken_stories(draw: st.DrawFn) -> tuple[str, Story]:
    """A small story with up to four mutations, and what was done to it."""
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
    seed = draw(st.integers(0, 1 << 16))
    random = Random(seed)
    chosen: list[str] = []
    for _ in range(draw(st.integers(0, 4))):
        mutation = draw(st.sampled_from([mutation for mutation in MUTATIONS if mutation.is_possible(story)]))
        mutation(story, random)
        chosen.append(mutation.__name__)
    return f"{' + '.join(chosen) or 'clean'} (seed {seed})", story
